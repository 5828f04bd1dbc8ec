import { z } from 'zod';
import { type IdPrefix, idPattern } from '../domain/ids.ts';

/** The list envelope of decisions.md, "Envelope". */
export const listOf = (item: z.ZodType) =>
  z.object({
    object: z.literal('list'),
    data: z.array(item),
    has_more: z.boolean(),
    next_cursor: z.string().nullable(),
  });

/** On the wire it is digits, and no other way of writing the number. */
export const Limit = z
  .string()
  .regex(/^([1-9][0-9]?|100)$/, 'must be an integer between 1 and 100')
  .transform(Number)
  .default(20)
  .meta({
    description: 'How many, 1 to 100; 20 when left out.',
    ...{ type: 'integer', minimum: 1, maximum: 100, pattern: undefined },
  });

export const StartingAfter = (prefix: IdPrefix) =>
  z
    .string()
    .regex(new RegExp(idPattern(prefix)), 'must be the id of the last item on the previous page')
    .optional()
    .meta({ description: 'The id of the last item of the page before.' });

/** @param rows up to `limit` + 1 of them: one more than fits tells that there is more. */
export function presentList<T extends { id: string }>(rows: T[], limit: number): object {
  const data = rows.slice(0, limit);
  const hasMore = rows.length > limit;
  return { object: 'list', data, has_more: hasMore, next_cursor: hasMore ? (data.at(-1)?.id ?? null) : null };
}

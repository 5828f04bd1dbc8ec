import { z } from 'zod';
import { isId } from '../domain/ids.ts';

/** The list envelope of decisions.md, "Envelope". */
export const listOf = (item: z.ZodType) =>
  z.object({
    object: z.literal('list'),
    data: z.array(item),
    has_more: z.boolean(),
    next_cursor: z.string().nullable(),
  });

export const Limit = z
  .string()
  .regex(/^\d{1,3}$/, 'must be an integer from 1 to 100')
  .transform(Number)
  .pipe(z.number().min(1, 'must be an integer from 1 to 100').max(100, 'must be an integer from 1 to 100'))
  .default(20)
  .meta({ description: 'How many, 1 to 100.' });

export const StartingAfter = (prefix: Parameters<typeof isId>[0]) =>
  z
    .string()
    .refine((id) => isId(prefix, id), `must be the id of the last item of the page before`)
    .optional()
    .meta({ description: 'The id of the last item of the page before.' });

/** @param rows up to `limit` + 1 of them: one more than fits tells that there is more. */
export function presentList<T extends { id: string }>(rows: T[], limit: number): object {
  const data = rows.slice(0, limit);
  const hasMore = rows.length > limit;
  return { object: 'list', data, has_more: hasMore, next_cursor: hasMore ? (data.at(-1)?.id ?? null) : null };
}

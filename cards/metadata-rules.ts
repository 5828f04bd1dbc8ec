import { z } from 'zod';
import { ApiError } from '../domain/api-error.ts';
import { Line, Note } from '../domain/fields.ts';

const MAX_KEYS = 50;

/** What a partner stores with a card (docs/partners/cards.md). */
export type Metadata = Readonly<Record<string, string>>;

const Key = Line(40);
const Value = Note(500);

/**
 * The metadata of something new, with its keys in order, so that two requests that only order them
 * differently are the same.
 */
export const Metadata = z.preprocess(
  refuseLostKey,
  z
    .record(Key, Value)
    .refine((metadata) => Object.keys(metadata).length <= MAX_KEYS, `must have at most ${MAX_KEYS} keys`)
    .overwrite(inOrder)
    .meta({ maxProperties: MAX_KEYS }),
);

/** What a PATCH makes of metadata: a value sets its key, null removes it. */
export const MetadataChanges = z.preprocess(
  refuseLostKey,
  z.record(Key, Value.nullable()).overwrite(inOrder),
);
export type MetadataChanges = z.infer<typeof MetadataChanges>;

/** What a PATCH can have, which removes some keys and sets others. */
const MAX_CHANGES = 2 * MAX_KEYS;

/** Zod would look at each of any number of keys, and leave out this one without a word. */
function refuseLostKey(metadata: unknown, ctx: z.core.$RefinementCtx): unknown {
  if (typeof metadata === 'object' && metadata !== null && Object.hasOwn(metadata, '__proto__')) {
    ctx.issues.push({ code: 'custom', message: "can't have a key __proto__", input: metadata });
  }
  if (typeof metadata === 'object' && metadata !== null && Object.keys(metadata).length > MAX_CHANGES) {
    ctx.issues.push({ code: 'custom', message: `must have at most ${MAX_KEYS} keys`, input: metadata });
  }
  return metadata;
}

/**
 * @param changes null removes every key
 * @throws ApiError `validation_failed` if there would be too many keys
 */
export function mergeMetadata(metadata: Metadata, changes: MetadataChanges | null): Metadata {
  if (changes === null) return {};
  const merged = Object.entries({ ...metadata, ...changes }).filter((entry) => entry[1] !== null);
  if (merged.length > MAX_KEYS) {
    throw ApiError.ofField(
      'metadata',
      `metadata must have at most ${MAX_KEYS} keys, and would have ${merged.length}: remove some by setting them to null`,
    );
  }
  return inOrder(Object.fromEntries(merged) as Record<string, string>);
}

/** PostgreSQL keeps the keys of a JSON object in an order of its own. */
export function inOrder<Value>(metadata: Readonly<Record<string, Value>>): Record<string, Value> {
  return Object.fromEntries(Object.entries(metadata).sort(([a], [b]) => (a < b ? -1 : 1)));
}

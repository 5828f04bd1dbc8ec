import { sql } from 'kysely';
import { z } from 'zod';
import { boundTime, firstId } from '../../accounts/clock.ts';
import { ApiError } from '../../domain/api-error.ts';
import { ObjectType, Timestamp } from '../../domain/fields.ts';
import { type IdPrefix, idPattern } from '../../domain/ids.ts';
import type { Tenant } from '../../domain/mode.ts';
import type { Tables } from '../../platform/db/entities.ts';

/**
 * What every list looks like (docs/partners/lists.md). The API document names it after its items: `CardList`.
 */
export const listEnvelope = <Item extends z.ZodType>(item: Item) =>
  z
    .object({
      object: ObjectType('list'),
      data: z.array(item).describe('The items of this page.'),
      has_more: z.boolean().describe('Whether there are more items after this page.'),
      next_cursor: z
        .string()
        .nullable()
        .describe('Pass it as `starting_after` to get the next page. Null if this is the last one.'),
    })
    .meta({ id: `${item.meta()?.id}List`, description: 'One page of a list.' });

/** In the query, only plain digits are accepted: not `1e1`, `0x10` or `010`. */
export const Limit = z
  .string()
  .regex(/^([1-9][0-9]?|100)$/, 'must be an integer between 1 and 100')
  .transform(Number)
  .default(20)
  .meta({
    description: 'How many items to return, from 1 to 100.',
    type: 'integer',
    minimum: 1,
    maximum: 100,
    default: 20,
    pattern: undefined,
  });

export const StartingAfter = (prefix: IdPrefix) =>
  z
    .string()
    .regex(new RegExp(idPattern(prefix)), 'must be the id of the last item on the previous page')
    .optional()
    .describe('The id of the last item of the previous page, which is its `next_cursor`.');

/** The filters by `created` that every list has whose items have it. Both ends are included. */
export const CREATED_FILTERS = {
  created_gte: Timestamp.optional().describe('Only what was created at this time or later.'),
  created_lte: Timestamp.optional().describe('Only what was created at this time or earlier.'),
};

interface List<Item> {
  object: 'list';
  data: Item[];
  has_more: boolean;
  next_cursor: string | null;
}

/** @param rows up to `limit` + 1 rows; the extra one means that there is another page */
export function presentList<Item extends { id: string }>(rows: Item[], limit: number): List<Item> {
  const data = rows.slice(0, limit);
  const hasMore = rows.length > limit;
  return { object: 'list', data, has_more: hasMore, next_cursor: hasMore ? (data.at(-1)?.id ?? null) : null };
}

/** A longer page would keep other accounts waiting while it is made, and memory while it is read. */
const MAX_PAGE_BYTES = 1_048_576;

/** How many rows are read at a time of a list whose items can be long. So many of the longest fill a page. */
const ROWS_AT_ONCE = 25;

/**
 * Reads a page of a list whose items can be tens of kilobytes long, and little more than fits into it: a page
 * that is read whole and then cut would cost several times as much, in every process on the way.
 * @param read reads up to `limit` + 1 items
 */
export async function readLongPage<Page extends PageRequest, Item extends { id: string }>(
  page: Page,
  read: (part: Page) => Promise<Item[]>,
): Promise<List<Item>> {
  const items: Item[] = [];
  for (let bytes = 0, startingAfter = page.startingAfter; ; startingAfter = items.at(-1)?.id) {
    const limit = Math.min(ROWS_AT_ONCE, page.limit - items.length);
    const found = await read({ ...page, limit, startingAfter });
    items.push(...found.slice(0, limit));
    if (found.length <= limit) return presentList(items, items.length);
    if (items.length < page.limit) bytes += Buffer.byteLength(JSON.stringify(found));
    if (items.length === page.limit || bytes > MAX_PAGE_BYTES)
      return presentList([...items, ...found.slice(limit)], items.length);
  }
}

/**
 * A response's JSON text. A page of a list that would be longer than about 1 MB ends earlier
 * (docs/partners/lists.md), but never without an item.
 */
export function toJson(body: object): string {
  if (!isList(body)) return JSON.stringify(body);
  const texts: string[] = [];
  let bytes = 0;
  for (const item of body.data) {
    const text = JSON.stringify(item);
    bytes += Buffer.byteLength(text);
    if (bytes > MAX_PAGE_BYTES && texts.length > 0) break;
    texts.push(text);
  }
  const page = texts.length < body.data.length ? presentList(body.data, texts.length) : body;
  return JSON.stringify({ ...page, data: [] }).replace('"data":[]', () => `"data":[${texts.join(',')}]`);
}

const isList = (body: object): body is List<{ id: string }> => 'object' in body && body.object === 'list';

/** The page a request asks for. */
export interface PageRequest {
  limit: number;
  startingAfter?: string | undefined;
  /** When the items were created. */
  createdGte?: Date | undefined;
  createdLte?: Date | undefined;
}

interface PageQuery {
  limit: number;
  starting_after?: string | undefined;
  created_gte?: Date | undefined;
  created_lte?: Date | undefined;
}

/** The page that a query of {@link Limit}, {@link StartingAfter} and {@link CREATED_FILTERS} asks for. */
export const requestedPage = (query: PageQuery): PageRequest => ({
  limit: query.limit,
  startingAfter: query.starting_after,
  createdGte: query.created_gte,
  createdLte: query.created_lte,
});

/** The values of a statement that reads a page. */
export const pageValues = ({ limit, startingAfter, createdGte, createdLte }: PageRequest) => ({
  limit: limit + 1,
  startingAfter: startingAfter ?? '',
  createdFrom: boundTime(createdGte),
  createdBefore: boundTime(createdLte && new Date(createdLte.getTime() + 1)),
});

export type PageValues = ReturnType<typeof pageValues>;

/**
 * The ids of a page: from `from` on and below `before`. An id contains the real time of `created`, so the ids
 * alone say what is in a range of time, whatever the account's clock (docs/decisions/lists-by-whole-keys.md,
 * docs/decisions/sandbox-clock.md).
 * @param time whose time `created` is in
 */
export function idRange(prefix: IdPrefix, values: Tenant & PageValues, time: 'account' | 'real' = 'account') {
  const { startingAfter, createdFrom, createdBefore } = values;
  const firstIdAt = (at: unknown) =>
    time === 'real'
      ? sql`${sql.lit(`${prefix}_`)} || id_time(greatest(${at}::timestamptz, 'epoch')) collate "C"`
      : firstId(prefix, values, at);
  return {
    from: sql<string>`(select case when ${createdFrom}::text is null then '' else ${firstIdAt(createdFrom)} end)`,
    // Ids consist of lowercase letters, digits and _.
    before: sql<string>`(select least(coalesce(nullif(${startingAfter}, ''), '~') collate "C",
      case when ${createdBefore}::text is null then '~' else ${firstIdAt(createdBefore)} end))`,
  };
}

/** One row that says whether a list of the account's rows can start after this id. */
export const requireStartingAfter = (
  table: keyof Tables,
  { partnerId, mode, startingAfter }: Tenant & PageValues,
) =>
  sql<{ known: boolean }>`(select ${startingAfter} = '' or exists (select from ${sql.table(table)}
    where partner_id = ${partnerId} and mode = ${mode} and id = ${startingAfter}) as known)`;

/** The same for a list of one card's rows, in a statement where the card is `c`. */
export const readCardCursor = (table: keyof Tables, { startingAfter }: PageValues) =>
  sql<boolean>`${startingAfter} = '' or exists (select from ${sql.table(table)} k
    where k.card_id = c.id and k.id = ${startingAfter})`.as('known');

/**
 * The rows of a page. The first row says whether the cursor is known, even if the page is empty.
 * @param what what the list contains, as in `a card`
 * @throws ApiError `validation_failed` if the cursor is not known
 */
export function pageRows<Row extends { id: string }>(
  rows: readonly { id: string | null; known: boolean }[],
  what: string,
): Row[] {
  if (rows[0]?.known === false) {
    throw ApiError.ofField('starting_after', `starting_after is not the id of ${what}`);
  }
  return rows.filter((row) => row.id !== null) as unknown[] as Row[];
}

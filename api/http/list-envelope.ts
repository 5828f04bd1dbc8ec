import { z } from 'zod';
import { ObjectType } from '../../domain/fields.ts';

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

/** The page that the query of a list asks for. */
export interface PageRequest {
  limit: number;
  starting_after?: string | undefined;
  created_gte?: Date | undefined;
  created_lte?: Date | undefined;
}

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
  for (let bytes = 0, starting_after = page.starting_after; ; starting_after = items.at(-1)?.id) {
    const limit = Math.min(ROWS_AT_ONCE, page.limit - items.length);
    const found = await read({ ...page, limit, starting_after });
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

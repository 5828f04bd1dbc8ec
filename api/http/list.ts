import { type RawBuilder, sql } from 'kysely';
import { z } from 'zod';
import { boundTime, firstId } from '../../accounts/clock.ts';
import { ApiError } from '../../domain/api-error.ts';
import { Timestamp } from '../../domain/fields.ts';
import { type IdPrefix, idPattern } from '../../domain/ids.ts';
import type { Tenant } from '../../domain/mode.ts';
import type { Row, Tables } from '../../platform/db/entities.ts';
import { newestRows } from '../../platform/db/newest.ts';
import type { Reads } from '../../platform/db/sql.ts';
import { listEnvelope, type PageRequest, presentList } from './list-envelope.ts';
import { type Declaration, declare } from './route.ts';

/** In the query, only plain digits are accepted: not `1e1`, `0x10` or `010`. */
const Limit = z
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

const StartingAfter = (prefix: IdPrefix) =>
  z
    .string()
    .regex(new RegExp(idPattern(prefix)), 'must be the id of the last item on the previous page')
    .optional()
    .describe('The id of the last item of the previous page, which is its `next_cursor`.');

/** The filters by `created` that every list has whose items have it. Both ends are included. */
const CREATED_FILTERS = {
  created_gte: Timestamp.optional().describe('Only what was created at this time or later.'),
  created_lte: Timestamp.optional().describe('Only what was created at this time or earlier.'),
};

/**
 * Declares a list whose items have `id` and `created`, newest first (docs/partners/lists.md).
 * @param filters the parameters that only it has
 */
export const declareList = <Item extends z.ZodType, Filters extends z.ZodRawShape = Record<never, never>>({
  idPrefix,
  item,
  example,
  filters,
  ...declared
}: Pick<Declaration, 'path' | 'scope' | 'operationId' | 'summary' | 'description' | 'errors'> & {
  idPrefix: IdPrefix;
  item: Item;
  example: { id: string };
  filters?: Filters;
}) =>
  declare({
    method: 'get',
    ...declared,
    query: z.strictObject({
      limit: Limit,
      starting_after: StartingAfter(idPrefix),
      ...(filters as Filters),
      ...CREATED_FILTERS,
    }),
    responses: { 200: listEnvelope(item) },
    examples: { 200: presentList([example], 1) },
  });

/** A filter by card. */
export const CardFilter = z
  .string()
  .regex(new RegExp(idPattern('card')), 'must be the id of a card')
  .optional();

/** The values of a statement that reads a page. */
export const pageValues = ({ limit, starting_after, created_gte, created_lte }: PageRequest) => ({
  limit: limit + 1,
  startingAfter: starting_after ?? '',
  createdFrom: boundTime(created_gte),
  createdBefore: boundTime(created_lte && new Date(created_lte.getTime() + 1)),
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
    time === 'account'
      ? firstId(prefix, values, at)
      : sql`${sql.lit(`${prefix}_`)} || id_time(greatest(${at}::timestamptz, 'epoch')) collate "C"`;
  return {
    from: sql<string>`(select case when ${createdFrom}::text is null then '' else ${firstIdAt(createdFrom)} end)`,
    // Ids consist of lowercase letters, digits and _.
    before: sql<string>`(select least(coalesce(nullif(${startingAfter}, ''), '~') collate "C",
      case when ${createdBefore}::text is null then '~' else ${firstIdAt(createdBefore)} end))`,
  };
}

/** Which rows a list is of, and what is read of them. */
interface Listed<Table extends keyof Tables, Column extends keyof Tables[Table] & string> {
  table: Table;
  columns: readonly Column[];
  idPrefix: IdPrefix;
}

/** The values of a statement that reads a page of one card's rows. */
export type CardPageValues = Tenant & PageValues & { cardId: string };

type Where<Table extends keyof Tables> = Readonly<Partial<Record<keyof Tables[Table] & string, unknown>>>;

/** The rows of a page, read by the one index that has these columns and the id. */
export const newestListed = <Table extends keyof Tables, Column extends keyof Tables[Table] & string>(
  { table, columns, idPrefix }: Listed<Table, Column>,
  values: Tenant & PageValues,
  where: Where<Table>,
): RawBuilder<Row<Table, Column>> =>
  newestRows({
    table,
    columns,
    where,
    id: 'id' as Column,
    ...idRange(idPrefix, values),
    limit: values.limit,
  });

/** The first columns of an index of an account's rows. */
export const accountKey = ({ partnerId, mode }: Tenant) => ({ partner_id: partnerId, mode });

/** Reads a page of an account's rows by the one index that has its key, these columns and the id. */
export const accountPage = <Table extends keyof Tables, Column extends keyof Tables[Table] & string>(
  db: Reads,
  values: Tenant & PageValues,
  listed: Listed<Table, Column>,
  where: Where<Table>,
) => pageOf(db, values, listed.table, newestListed(listed, values, { ...accountKey(values), ...where }));

/** The same of one of its cards. Another account's card has no rows. */
export const accountPageOfCard = <Table extends keyof Tables, Column extends keyof Tables[Table] & string>(
  db: Reads,
  values: CardPageValues,
  listed: Listed<Table, Column>,
  where: Where<Table>,
) =>
  pageOf(
    db,
    values,
    listed.table,
    sql<Row<Table, Column>>`(select newest.* from card c
      cross join lateral ${newestListed(listed, values, { card_id: sql.ref('c.id'), ...where })} newest
      where c.partner_id = ${values.partnerId} and c.mode = ${values.mode} and c.id = ${values.cardId})`,
  );

/**
 * Reads a page of an account's rows: `newest`, with their `partner_id` and `mode`, each beside whether the
 * list can start after the cursor. An empty page is one row that says so.
 */
export const pageOf = <Columns>(
  db: Reads,
  { partnerId, mode, startingAfter }: Tenant & PageValues,
  table: keyof Tables,
  newest: RawBuilder<Columns>,
) =>
  db
    .selectFrom(
      sql<{ known: boolean }>`(select ${startingAfter} = '' or exists (select from ${sql.table(table)}
        where partner_id = ${partnerId} and mode = ${mode} and id = ${startingAfter}) as known)`.as('k'),
    )
    .leftJoin(newest.as('page'), (join) =>
      join.on(sql.ref('page.partner_id'), '=', partnerId).on(sql.ref('page.mode'), '=', mode),
    )
    .select('k.known')
    .selectAll('page')
    .orderBy(sql.ref('page.id'), 'desc');

/**
 * Reads a page of the rows of the card `c`, by one index that begins with it. The list can start after each
 * of them. An empty page is one row, and no row means that the account has no such card.
 */
export const cardPage = <Table extends keyof Tables, Column extends keyof Tables[Table] & string>(
  db: Reads,
  values: CardPageValues,
  listed: Listed<Table, Column>,
  where: Where<Table>,
) =>
  db
    .selectFrom('card as c')
    .leftJoinLateral(
      newestListed(listed, values, { card_id: sql.ref('c.id'), ...where }).as('page'),
      (join) => join.onTrue(),
    )
    .select(
      sql<boolean>`${values.startingAfter} = '' or exists (select from ${sql.table(listed.table)} k
        where k.card_id = c.id and k.id = ${values.startingAfter})`.as('known'),
    )
    .selectAll('page')
    .where('c.partner_id', '=', values.partnerId)
    .where('c.mode', '=', values.mode)
    .where('c.id', '=', values.cardId)
    .orderBy(sql.ref('page.id'), 'desc');

/**
 * The rows of a page that was read.
 * @param what what the list contains, as in `a card`
 * @throws ApiError `validation_failed` if the cursor is not known; `card_not_found` if a card's page has no row
 */
export function pageRows<Row extends { id: string }>(
  rows: readonly { id: string | null; known: boolean }[],
  what: string,
): Row[] {
  const [first] = rows;
  if (first === undefined) throw new ApiError('card_not_found');
  if (!first.known) throw ApiError.ofField('starting_after', `starting_after is not the id of ${what}`);
  return rows.filter((row) => row.id !== null) as unknown[] as Row[];
}

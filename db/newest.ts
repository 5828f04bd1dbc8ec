import { type RawBuilder, sql } from 'kysely';
import { columnsOf } from './sql.ts';
import type { Row, Tables } from './tables.ts';

/** The largest page of a list, and the one row that tells whether there are more. */
const LARGEST_PAGE = 101;

type ColumnOf<Table extends keyof Tables> = keyof Tables[Table] & string;

/**
 * Reads the newest rows of a table, newest first, by the one index that `where` and `id` name: an expression in
 * parentheses, for a `sql` template or a builder's join. The planner could believe that another index finds a page
 * sooner, most of all the one on the ids alone, and would walk through everything newer that belongs to somebody else.
 * So it compares and orders by whole keys, which no other index can do, and the largest page is a constant that a
 * prepared plan can count on (docs/decisions/lists-by-whole-keys.md).
 */
export function newestRows<Table extends keyof Tables, Column extends ColumnOf<Table>>(wanted: {
  table: Table;
  columns: readonly Column[];
  /** The columns of an index in its order, all but the last, with what each has to be: a value or an expression. */
  where: Readonly<Partial<Record<ColumnOf<Table>, unknown>>>;
  /** The index's last column: ids, which sort by age. */
  id: ColumnOf<Table>;
  /** The lowest id that is wanted, and the id from which on none is. */
  from?: unknown;
  before?: unknown;
  /** How many are wanted, and a constant it is at most. */
  limit: unknown;
  most?: number;
}): RawBuilder<Row<Table, Column>> {
  // Ids are lowercase letters, digits and _.
  const {
    table,
    columns,
    where,
    id,
    from = sql.lit(''),
    before = sql.lit('~'),
    limit,
    most = LARGEST_PAGE,
  } = wanted;
  const names = [...Object.keys(where), id].map((name) => sql.ref(name));
  const key = (last: unknown) =>
    sql`(${sql.join([...Object.values(where), last].map((value) => unseen(value)))})`;
  return sql`(select newest.* from (
      select ${columnsOf(table, columns)} from ${sql.table(table)}
      where (${sql.join(names)}) >= ${key(from)} and (${sql.join(names)}) < ${key(before)}
      order by ${sql.join(names.map((name) => sql`${name} desc`))} limit ${sql.lit(most)}
    ) newest limit ${limit})`;
}

/**
 * A value that the planner can't see. If it could, it would expect fewer rows between two known keys than between unknown
 * ones, and one partition rather than all of them, and plan every page anew, which costs three times what reading the page
 * does. The partition is then found when the statement runs.
 */
export function unseen<Value>(value: unknown): RawBuilder<Value> {
  const isExpression = typeof value === 'object' && value !== null && 'toOperationNode' in value;
  return isExpression ? (value as RawBuilder<Value>) : sql<Value>`(select ${value}::text)`;
}

import { type RawBuilder, sql } from 'kysely';
import type { Row, Tables } from './entities.ts';
import { columnList } from './sql.ts';

/** The largest page of a list, plus the row that says whether there are more. */
const LARGEST_PAGE = 101;

type ColumnOf<Table extends keyof Tables> = keyof Tables[Table] & string;

/**
 * Reads the newest rows of a table, newest first, by the one index that `where` and `id` name: an expression
 * in parentheses, for a `sql` template or a builder's join. Otherwise the planner might prefer another index,
 * such as the one on the ids alone, and walk through all newer rows of other accounts. So this compares and
 * orders by whole keys, which only one index supports, and the largest page is a constant that a prepared
 * plan can rely on (docs/decisions/lists-by-whole-keys.md).
 */
export function newestRows<Table extends keyof Tables, Column extends ColumnOf<Table>>(wanted: {
  table: Table;
  columns: readonly Column[];
  /** The index's columns in order, except the last, each with its required value or expression. */
  where: Readonly<Partial<Record<ColumnOf<Table>, unknown>>>;
  /** The index's last column: ids, which sort by age. */
  id: ColumnOf<Table>;
  /** A further condition. Rows that don't meet it are read and left out. */
  onlyIf?: RawBuilder<unknown>;
  /** The lowest id to return, and the id that all have to be below. */
  from?: unknown;
  before?: unknown;
  /** How many rows to return, and a constant upper bound for that. */
  limit: unknown;
  maxRows?: number;
}): RawBuilder<Row<Table, Column>> {
  // Ids are lowercase letters, digits and _.
  const {
    table,
    columns,
    where,
    id,
    onlyIf = sql`true`,
    from = sql.lit(''),
    before = sql.lit('~'),
    limit,
    maxRows = LARGEST_PAGE,
  } = wanted;
  const names = [...Object.keys(where), id].map((name) => sql.ref(name));
  const key = (last: unknown) =>
    sql`(${sql.join([...Object.values(where), last].map((value) => unseen(value)))})`;
  return sql`(select newest.* from (
      select ${columnList(table, columns)} from ${sql.table(table)}
      where (${sql.join(names)}) >= ${key(from)} and (${sql.join(names)}) < ${key(before)} and ${onlyIf}
      order by ${sql.join(names.map((name) => sql`${name} desc`))} limit ${sql.lit(maxRows)}
    ) newest limit ${limit})`;
}

/**
 * A value that the planner can't see. If it could, a custom plan would look cheaper (fewer rows between known
 * keys, one partition instead of all), so it would plan every page anew, which costs three times as much as
 * reading the page. The partition is found when the statement runs.
 */
export function unseen<Value>(value: unknown): RawBuilder<Value> {
  const isExpression = typeof value === 'object' && value !== null && 'toOperationNode' in value;
  return isExpression ? (value as RawBuilder<Value>) : sql<Value>`(select ${value}::text)`;
}

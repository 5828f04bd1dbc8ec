import { type RawBuilder, sql } from 'kysely';
import type { Tables } from './entities.ts';

/**
 * The recursive CTE `following` for a `sql` template: every account that has a row in a queue, in order. It
 * skips from account to account in an index that begins with them, so it reads one row of each and not the
 * whole queue, and no further than the rest of the statement asks. The statement has to begin WITH RECURSIVE.
 * @param queue.account the columns that make an account, and its endpoint if those take turns
 * @param queue.isQueued the condition of the index
 * @param queue.after values for these columns: the accounts after them are found
 */
export function followingAccounts(queue: {
  table: keyof Tables;
  account: readonly ('partner_id' | 'mode' | 'endpoint_id')[];
  isQueued: RawBuilder<unknown>;
  after: RawBuilder<unknown>;
}): RawBuilder<unknown> {
  const account = sql.join(queue.account.map((column) => sql.ref(column)));
  const previous = sql.join(queue.account.map((column) => sql.ref(`f.${column}`)));
  const firstAfter = (values: RawBuilder<unknown>) => sql`
    SELECT ${account} FROM ${sql.table(queue.table)} WHERE ${queue.isQueued} AND (${account}) > (${values})
    ORDER BY ${account} LIMIT 1`;
  return sql`following (${account}) AS (
    (${firstAfter(queue.after)})
    UNION ALL
    SELECT further.* FROM following f CROSS JOIN LATERAL (${firstAfter(previous)}) further
  )`;
}

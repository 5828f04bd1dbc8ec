import { sql } from 'kysely';
import type { Orm } from '../platform/db/orm.ts';
import { autocommitStatement } from '../platform/db/sql.ts';

/**
 * Tells the other API processes which accounts are active in this one.
 * @param processId a random id of this process
 * @param accounts the active accounts, most recently active first
 * @returns the active accounts of every other process that has reported its own in the last three seconds
 */
export async function shareActiveAccounts(
  orm: Orm,
  processId: string,
  accounts: readonly string[],
): Promise<string[][]> {
  const others = await share(orm, { processId, accounts });
  return others.map((other) => other.active_accounts);
}

// Written out, because one round trip tells, asks, and forgets the processes that are gone.
const share = autocommitStatement(
  (_, { processId, accounts }: { processId: string; accounts: readonly string[] }) => sql<{
    active_accounts: string[];
  }>`
  WITH own AS (
    INSERT INTO api_process AS p (id, active_accounts, seen_at) VALUES (${processId}, ${accounts}::text[], now())
    ON CONFLICT (id) DO UPDATE SET active_accounts = excluded.active_accounts, seen_at = excluded.seen_at),
  gone AS (
    DELETE FROM api_process WHERE id IN (
      SELECT id FROM api_process WHERE seen_at < now() - interval '1 minute' FOR UPDATE SKIP LOCKED))
  SELECT active_accounts FROM api_process
  WHERE id <> ${processId} AND seen_at > now() - interval '3 seconds'`,
);

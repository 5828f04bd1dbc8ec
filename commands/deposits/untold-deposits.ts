import type { EntityManager } from '@mikro-orm/postgresql';
import { query } from '../../db/sql.ts';
import { UNSAFE_COMMIT } from '../../db/unsafe-commit.ts';
import type { Mode } from '../../domain/mode.ts';

/** Deposits of an account in one turn, and accounts in one turn. */
const MOST_EACH = 4;
const ACCOUNTS = 8;
/** Longer than it takes to tell a workflow. */
const LEASE_SECONDS = 15;

/** A change of a deposit that its workflow has yet to hear of. */
export interface UntoldDeposit {
  id: string;
  partner_id: string;
  mode: Mode;
  version: number;
}

/**
 * Leases deposits whose workflows have to hear that they have changed: a few of each account in turn, oldest first.
 * @param after the account to begin behind; null: the first one
 * @returns `last`: the account to go on behind; null where all of them have had their turn
 */
export async function takeUntoldDeposits(
  em: EntityManager,
  after: string | null,
): Promise<{ untold: UntoldDeposit[]; last: string | null }> {
  const rows = await query<UntoldDeposit | { id: null; partner_id: string }>(em, TAKE, [after ?? '']);
  const accounts = [...new Set(rows.map(({ partner_id }) => partner_id))];
  return {
    untold: rows.filter((row): row is UntoldDeposit => row.id !== null),
    last: accounts.length < ACCOUNTS ? null : (accounts.at(-1) ?? null),
  };
}

/** Records that a workflow has heard. What has happened since then it has yet to hear. */
export async function markDepositTold(
  em: EntityManager,
  { id, version }: Pick<UntoldDeposit, 'id' | 'version'>,
): Promise<void> {
  await query(
    em,
    `UPDATE deposit SET told_version = $2, lease_expires_at = '-infinity' WHERE id = $1 AND told_version < $2`,
    [id, version],
  );
}

// The accounts are found by skipping through the index. A deposit that somebody holds has its turn later.
const TAKE = `
  WITH RECURSIVE ${UNSAFE_COMMIT}, following (partner_id) AS (
    (SELECT partner_id FROM deposit WHERE told_version < version AND partner_id > $1 ORDER BY partner_id LIMIT 1)
    UNION ALL
    SELECT further.partner_id FROM following f CROSS JOIN LATERAL (
      SELECT d.partner_id FROM deposit d WHERE d.told_version < d.version AND d.partner_id > f.partner_id
      ORDER BY d.partner_id LIMIT 1) further
  ), account AS MATERIALIZED (
    SELECT partner_id FROM following LIMIT ${ACCOUNTS}
  ), due AS MATERIALIZED (
    SELECT d.id FROM account a CROSS JOIN LATERAL (
      SELECT u.id FROM deposit u
      WHERE u.told_version < u.version AND u.partner_id = a.partner_id AND u.lease_expires_at <= clock_timestamp()
      ORDER BY u.id LIMIT ${MOST_EACH} FOR NO KEY UPDATE SKIP LOCKED) d
  ), leased AS (
    UPDATE deposit d SET lease_expires_at = clock_timestamp() + interval '${LEASE_SECONDS} seconds'
    FROM due WHERE d.id = due.id
    RETURNING d.id, d.partner_id, d.mode, d.version
  )
  SELECT a.partner_id, l.id, l.mode, l.version
  FROM unsafe_commit, account a LEFT JOIN leased l ON l.partner_id = a.partner_id
  ORDER BY a.partner_id, l.id`;

import { sql } from 'kysely';
import type { Tenant } from '../domain/mode.ts';
import { DEPOSIT_COLUMNS, of } from '../platform/db/columns.ts';
import type { Orm } from '../platform/db/orm.ts';
import { anyOf, type Reader, readStatement, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import {
  type AccountDeposits,
  type AccountsWanted,
  accountOf,
  MAX_AT_ONCE,
  writeDepositEvents,
} from './deposit-state.ts';

/** Deposits that are looked at in one turn, those that are due the longest first. */
const MAX_LOOKED_AT = 500;

/**
 * Expires live deposits of an account for which nothing had arrived when the chain's time passed their
 * deadline, with `deposit.expired` for each: one transaction. Those that another transaction holds, or that
 * are not due, stay as they are. The scan doesn't do this itself, since writing an event can wait for an
 * account's endpoint (docs/decisions/deposits-in-two-steps.md).
 * @returns how many have expired
 */
export function expireDeposits(orm: Orm, { partnerId, mode, depositIds }: AccountDeposits): Promise<number> {
  return transaction(orm, async (tx) => {
    const expired = await expire(tx, { partnerId, mode, depositIds });
    const rows = expired.map((row) => ({ ...row, received_micro_usdt: '0', payments: [] }));
    await writeDepositEvents(
      tx,
      rows.map((row) => ({ type: 'deposit.expired', row, clock: null })),
    );
    return rows.length;
  });
}

/** Finds the work for {@link expireDeposits}. */
export const findUnpaid = (em: Reader, { except, limit }: AccountsWanted): Promise<AccountDeposits[]> =>
  unpaid(em, { except: except.map(accountOf), limit });

/** Of deposit d and its chain's scan s: the scan has passed its deadline, and found nothing for it. */
const IS_UNPAID = sql<boolean>`d.status = 'awaiting_payment' AND d.expires_at < s.block_time
  AND NOT EXISTS (SELECT FROM deposit_payment p WHERE p.deposit_id = d.id)
  AND NOT EXISTS (SELECT FROM unconfirmed_payment u WHERE u.deposit_id = d.id)`;

const expire = writeStatement(
  (db, { partnerId, mode, depositIds }: Tenant & { depositIds: readonly string[] }) =>
    db
      .with('due', (due) =>
        due
          .selectFrom('deposit as d')
          .innerJoin('chain_scan as s', 's.network', 'd.network')
          .select('d.id')
          .where('d.id', '=', anyOf(depositIds))
          .where('d.partner_id', '=', partnerId)
          .where('d.mode', '=', mode)
          .where(IS_UNPAID)
          .forNoKeyUpdate('d')
          .skipLocked(),
      )
      .updateTable('deposit as d')
      .from('due')
      .set({ status: 'expired', version: sql<number>`d.version + 1`, changed_at: sql<string>`now()` })
      .whereRef('d.id', '=', 'due.id')
      .where('d.partner_id', '=', partnerId)
      .where('d.mode', '=', mode)
      .returning(of('d', DEPOSIT_COLUMNS)),
);

// Written out for the arrays. It reads no more than what is due, from the index of deposits that can expire.
const unpaid = readStatement(
  (_, { except, limit }: { except: readonly string[]; limit: number }) => sql<AccountDeposits>`
    SELECT u.partner_id AS "partnerId", u.mode,
      (array_agg(u.id ORDER BY u.expires_at))[:${sql.lit(MAX_AT_ONCE)}] AS "depositIds"
    FROM chain_scan s CROSS JOIN LATERAL (
      SELECT d.id, d.partner_id, d.mode, d.expires_at FROM deposit d
      WHERE d.network = s.network AND ${IS_UNPAID}
        AND d.partner_id || '/' || d.mode <> ALL (${except}::text[])
      ORDER BY d.expires_at LIMIT ${sql.lit(MAX_LOOKED_AT)}) u
    GROUP BY u.partner_id, u.mode ORDER BY min(u.expires_at) LIMIT ${limit}`,
  { acrossTenants: 'queue' },
);

import type { EntityManager } from '@mikro-orm/postgresql';
import { query } from '../db/sql.ts';
import type { Mode } from '../domain/mode.ts';
import { accountId } from './account-id.ts';
import type { TransferCode } from './operation.ts';

/** One change of a prepaid balance, as the ledger wrote it. */
export interface PrepaidEntry {
  /** Its number in the account's chain, from 1, without a gap. */
  version: number;
  transferId: string;
  operationId: string;
  code: TransferCode;
  /** Credits above zero, debits below. */
  amountCents: number;
  balanceAfterCents: number;
  createdAt: Date;
}

/** The newest `limit` entries of a prepaid account, from `fromVersion` backwards where it is given. */
export async function readPrepaidEntries(
  em: EntityManager,
  partnerId: string,
  mode: Mode,
  page: { limit: number; fromVersion?: bigint | undefined },
): Promise<PrepaidEntry[]> {
  const rows = await query<EntryRow>(em, ENTRIES, [
    accountId('prepaid', partnerId, mode),
    String(page.fromVersion ?? MAX_BIGINT),
    page.limit,
  ]);
  return rows.map((row) => ({
    version: Number(row.account_version),
    transferId: row.transfer_id,
    operationId: row.operation_id,
    code: row.code,
    amountCents: row.side === 'credit' ? Number(row.amount) : -Number(row.amount),
    balanceAfterCents: Number(row.balance_after),
    createdAt: new Date(row.created_at),
  }));
}

const MAX_BIGINT = 2n ** 63n - 1n;

const ENTRIES = `
  SELECT e.account_version, e.transfer_id, e.side, e.amount, e.balance_after, t.operation_id, t.code, t.created_at
  FROM (
    SELECT account_version, transfer_id, side, amount, balance_after FROM ledger.entry
    WHERE account_id = $1 AND account_version <= $2 AND account_version IS NOT NULL
    ORDER BY account_version DESC LIMIT $3
  ) e CROSS JOIN LATERAL (SELECT operation_id, code, created_at FROM ledger.transfer WHERE id = e.transfer_id LIMIT 1) t
  ORDER BY e.account_version DESC`;

interface EntryRow {
  account_version: string;
  transfer_id: string;
  side: 'debit' | 'credit';
  amount: string;
  balance_after: string;
  operation_id: string;
  code: TransferCode;
  created_at: string;
}

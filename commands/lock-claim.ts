import type { EntityManager } from '@mikro-orm/postgresql';
import { query } from '../db/sql.ts';

/** A claim, locked until the transaction ends. */
export interface LockedClaim {
  /** The card it is about, where there was one before it. */
  cardId: string | null;
  answered: boolean;
}

interface LockedRow {
  card_id: string | null;
  answered: boolean;
}

/** Locks a claim; null where there is none any more. Comes before every other lock but that of the account's usage. */
export async function lockClaim(tx: EntityManager, claimId: string): Promise<LockedClaim | null> {
  const [row] = await query<LockedRow>(
    tx,
    `SELECT card_id, response_status IS NOT NULL AS answered FROM idempotency_claim WHERE id = $1
     FOR NO KEY UPDATE`,
    [claimId],
  );
  return row === undefined ? null : { cardId: row.card_id, answered: row.answered };
}

/**
 * Locks the account's usage row, which puts the account's fundings in one order, and then the claim, so that one run of
 * it decides at a time.
 * @returns null where there is no such claim any more: its request was not valid, and it was forgotten.
 */
export async function lockUsageAndClaim(tx: EntityManager, claimId: string): Promise<LockedClaim | null> {
  const [row] = await query<LockedRow>(
    tx,
    `SELECT c.card_id, c.response_status IS NOT NULL AS answered
     FROM account_usage u JOIN idempotency_claim c ON c.partner_id = u.partner_id AND c.mode = u.mode
     WHERE c.id = $1
     FOR NO KEY UPDATE`,
    [claimId],
  );
  return row === undefined ? null : { cardId: row.card_id, answered: row.answered };
}

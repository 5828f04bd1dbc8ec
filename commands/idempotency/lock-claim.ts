import type { EntityManager } from '@mikro-orm/postgresql';
import { readStatement } from '../../db/sql.ts';

/** A claim, locked until the transaction ends. */
export interface LockedClaim {
  /** The card it is about, where there was one before it. */
  cardId: string | null;
  answered: boolean;
}

/** Locks a claim; null where there is none any more. Comes before every other lock but that of the account's usage. */
export async function lockClaim(tx: EntityManager, claimId: string): Promise<LockedClaim | null> {
  const [row] = await lock(tx, { claimId });
  return row === undefined ? null : { cardId: row.card_id, answered: row.answered };
}

/**
 * Locks the account's usage row, which puts the account's fundings in one order, and then the claim, so that one run of
 * it decides at a time.
 * @returns null where there is no such claim any more: its request was not valid, and it was forgotten.
 */
export async function lockUsageAndClaim(tx: EntityManager, claimId: string): Promise<LockedClaim | null> {
  const [row] = await lockBoth(tx, { claimId });
  return row === undefined ? null : { cardId: row.card_id, answered: row.answered };
}

const lock = readStatement((db, { claimId }: { claimId: string }) =>
  db
    .selectFrom('idempotency_claim')
    .select(({ eb }) => ['card_id', eb('response_status', 'is not', null).$castTo<boolean>().as('answered')])
    .where('id', '=', claimId)
    .forNoKeyUpdate(),
);

const lockBoth = readStatement((db, { claimId }: { claimId: string }) =>
  db
    .selectFrom('account_usage as u')
    .innerJoin('idempotency_claim as c', (join) =>
      join.onRef('c.partner_id', '=', 'u.partner_id').onRef('c.mode', '=', 'u.mode'),
    )
    .select(({ eb }) => [
      'c.card_id',
      eb('c.response_status', 'is not', null).$castTo<boolean>().as('answered'),
    ])
    .where('c.id', '=', claimId)
    .forNoKeyUpdate(),
);

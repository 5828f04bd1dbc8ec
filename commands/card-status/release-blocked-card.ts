import type { EntityManager } from '@mikro-orm/postgresql';
import type { KeyRing } from '../../crypto/key-ring.ts';
import { query } from '../../db/sql.ts';
import { ApiError } from '../../domain/api-error.ts';
import { MAX_AMOUNT_CENTS } from '../../domain/money.ts';
import { applyOperation } from '../../ledger/apply-operation.ts';
import { readBalance, readCardBalance } from '../../ledger/balances.ts';
import { LedgerRejected } from '../../ledger/ledger-error.ts';
import type { LedgerOperation } from '../../ledger/operation.ts';
import type { CardRow } from '../../resources/card.ts';
import { uncountOpenCard } from '../funding/account-usage.ts';
import { failPendingTopUps } from './fail-pending-top-ups.ts';

/**
 * What a block does beside the status, in the caller's transaction, which holds the locks of {@link lockPendingTopUps}
 * and the card's: what is on the card goes to the prepaid balance, its pending top-ups fail, and it is no longer counted
 * as open (partner-api.md, "States and transitions"; decisions.md, "Rules").
 * @param card the row as it is from now on
 * @returns the claims that have got their answer beside the block's own
 */
export async function releaseBlockedCard(tx: EntityManager, ring: KeyRing, card: CardRow): Promise<string[]> {
  await query(tx, `WITH done (partner_id, mode) AS (VALUES ($1::text, $2::text)) ${uncountOpenCard}`, [
    card.partner_id,
    card.mode,
  ]);
  await releaseBalance(tx, card);
  return failPendingTopUps(tx, ring, card);
}

/**
 * The network has blocked the card, so it is blocked, whatever the balance has become since {@link releaseNotPossible} was
 * looked for: what does not fit stays on the card.
 */
async function releaseBalance(tx: EntityManager, card: CardRow): Promise<void> {
  const cardCents = await readCardBalance(tx, card.id);
  if (cardCents === 0 || (await release(tx, card, cardCents))) return;
  // The ledger's call has locked the balance.
  const { totalCents } = await readBalance(tx, card.partner_id, card.mode);
  const roomCents = MAX_AMOUNT_CENTS - totalCents;
  if (roomCents > 0 && !(await release(tx, card, roomCents))) throw new Error(`no room for ${card.id}`);
}

/** @returns false where it would take the balance past the largest integer. */
async function release(tx: EntityManager, card: CardRow, amountCents: number): Promise<boolean> {
  try {
    const released = await applyOperation(tx, releaseOperation(card, amountCents));
    if (released.outcome !== 'applied') throw new Error(`the release of ${card.id} is ${released.outcome}`);
    return true;
  } catch (error) {
    if (!(error instanceof LedgerRejected) || error.reason !== 'balance_out_of_range') throw error;
    return false;
  }
}

/** Why a card can't be blocked whose money the prepaid balance has no room for: 409 `invalid_state`. */
export function releaseNotPossible(): ApiError {
  return new ApiError('invalid_state', {
    message:
      `Blocking the card would release its balance and take yours above ${MAX_AMOUNT_CENTS} cents, the most it can be. ` +
      'Freeze the card instead, and contact us.',
  });
}

/** What is on a card that is blocked goes to the prepaid balance. */
export function releaseOperation(card: CardRow, amountCents: number): LedgerOperation {
  const flow = { code: 'block_release', debit: { cardId: card.id }, credit: 'prepaid' } as const;
  return {
    operationId: `block/${card.id}`,
    partnerId: card.partner_id,
    mode: card.mode,
    transfers: [{ step: 'release', phase: 'single', amountCents, ...flow }],
  };
}

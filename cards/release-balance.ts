import { MAX_AMOUNT_CENTS } from '../domain/money.ts';
import { applyPosting } from '../ledger/apply-posting.ts';
import { readBalance, readCardBalance } from '../ledger/balances.ts';
import { LedgerRejected } from '../ledger/ledger-error.ts';
import type { Posting } from '../ledger/posting.ts';
import type { Transactor } from '../platform/db/sql.ts';
import type { CardRow } from './resource.ts';

/**
 * Moves what is free on a blocked card to the prepaid balance.
 * @param step what released it, if that was later than the block
 */
export function releasePosting(card: CardRow, amountCents: number, step = 'release'): Posting {
  return {
    operationId: `block/${card.id}`,
    partnerId: card.partner_id,
    mode: card.mode,
    transfers: [
      {
        step,
        phase: 'single',
        code: 'block_release',
        debit: { cardId: card.id },
        credit: 'prepaid',
        amountCents,
      },
    ],
  };
}

/**
 * Moves what is free on a blocked card to the prepaid balance. The network has blocked the card, so the block
 * stands, whatever has happened to the balance since the block. Money that is held stays on the card, and so
 * does what does not fit.
 * @param step what made the money free; each is released once
 */
export async function releaseBalance(tx: Transactor, card: CardRow, step: string): Promise<void> {
  const tenant = { partnerId: card.partner_id, mode: card.mode };
  const { balanceCents, heldCents } = await readCardBalance(tx, tenant, card.id);
  const availableCents = balanceCents - heldCents;
  if (availableCents === 0 || (await release(tx, card, availableCents, step))) return;
  // The ledger's call has locked the balance.
  const { totalCents } = await readBalance(tx, card.partner_id, card.mode);
  const roomCents = MAX_AMOUNT_CENTS - totalCents;
  if (roomCents > 0 && !(await release(tx, card, roomCents, step))) throw new Error(`no room for ${card.id}`);
}

/** @returns false if it would take the balance past the largest safe integer */
async function release(tx: Transactor, card: CardRow, amountCents: number, step: string): Promise<boolean> {
  try {
    const released = await applyPosting(tx, releasePosting(card, amountCents, step));
    if (released.outcome !== 'applied') throw new Error(`the release of ${card.id} is ${released.outcome}`);
    return true;
  } catch (error) {
    if (!(error instanceof LedgerRejected) || error.reason !== 'balance_out_of_range') throw error;
    return false;
  }
}

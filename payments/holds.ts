import { releasePosting } from '../cards/release-balance.ts';
import type { CardBalance, CardRow } from '../cards/resource.ts';
import type { AuthorizationState } from '../domain/authorization.ts';
import { MAX_AMOUNT_CENTS } from '../domain/money.ts';
import type { Posting, Transfer } from '../ledger/posting.ts';
import type { AuthorizationRow } from './authorization-resource.ts';
import type { Merchant } from './transaction-resource.ts';

// A pending authorization has exactly one hold in the ledger, of all that it holds. What changes that
// resolves the hold and makes the next one, in one posting.

export function toState(row: AuthorizationRow): AuthorizationState {
  return {
    status: row.status,
    amountCents: Number(row.amount_cents),
    heldCents: Number(row.held_cents),
    settledCents: Number(row.settled_cents),
  };
}

export function toMerchant(row: AuthorizationRow): Merchant {
  return {
    name: row.merchant_name,
    category_code: row.merchant_category_code,
    city: row.merchant_city,
    country: row.merchant_country,
  };
}

/**
 * The row of an authorization in another state. What it holds is a new hold, even if it is as much as before.
 */
export function withState(row: AuthorizationRow, state: AuthorizationState): AuthorizationRow {
  return {
    ...row,
    status: state.status,
    amount_cents: String(state.amountCents),
    held_cents: String(state.heldCents),
    settled_cents: String(state.settledCents),
    holds: row.holds + (state.heldCents > 0 ? 1 : 0),
  };
}

/**
 * The ledger's side of a change from one row to another: null if nothing was and nothing is held.
 * @param before null for a new authorization
 * @param clearedCents how much of its hold a clearing takes; the rest is free, or in the next hold
 */
export function holdPosting(
  before: AuthorizationRow | null,
  after: AuthorizationRow,
  clearedCents = 0,
): Posting | null {
  const flow = { code: 'authorization', debit: { cardId: after.card_id }, credit: 'network' } as const;
  const transfers: Transfer[] = [];
  if (before !== null && Number(before.held_cents) > 0) {
    const resolves = `hold/${before.holds}`;
    transfers.push(
      clearedCents > 0
        ? { ...flow, step: `${resolves}/post`, phase: 'post', amountCents: clearedCents, resolves }
        : {
            ...flow,
            step: `${resolves}/void`,
            phase: 'void',
            amountCents: Number(before.held_cents),
            resolves,
          },
    );
  }
  if (Number(after.held_cents) > 0) {
    const amountCents = Number(after.held_cents);
    transfers.push({ ...flow, step: `hold/${after.holds}`, phase: 'pending', amountCents });
  }
  if (transfers.length === 0) return null;
  return { operationId: `auth/${after.id}`, partnerId: after.partner_id, mode: after.mode, transfers };
}

/**
 * Releases what a resolved hold leaves free on a blocked card to the prepaid balance. What does not fit stays
 * on the card, as at the block.
 * @param before the authorization as it was
 * @param balance the card's without the hold
 * @returns null if the card is not blocked, or nothing is free
 */
export function releaseFromBlocked(
  card: CardRow,
  before: AuthorizationRow,
  { balanceCents, heldCents }: CardBalance,
  prepaidCents: number,
): { posting: Posting; releasedCents: number } | null {
  const isHeld = Number(before.held_cents) > 0;
  if (card.status !== 'blocked' || !isHeld) return null;
  const releasedCents = Math.min(balanceCents - heldCents, MAX_AMOUNT_CENTS - prepaidCents);
  if (releasedCents <= 0) return null;
  // Each hold is resolved once, so this step is new.
  const posting = releasePosting(card, releasedCents, `release/${before.id}/${before.holds}`);
  return { posting, releasedCents };
}

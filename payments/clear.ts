import { accountTime } from '../domain/account-clock.ts';
import { ApiError } from '../domain/api-error.ts';
import { clearedState, clearingShares } from '../domain/authorization.ts';
import { type ChargedTo, transactionFees } from '../domain/transaction.ts';
import { newId, readIdTime } from '../platform/crypto/new-id.ts';
import type { KeyedRequest } from '../requests/claim.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { type KeyedResponse, respondOnce } from '../requests/respond-once.ts';
import type { AuthorizationRow } from './authorization-resource.ts';
import { requireIssued } from './decide.ts';
import { settlementPosting } from './decide-settlements.ts';
import { holdPosting, releaseFromBlocked, toMerchant, toState, withState } from './holds.ts';
import { type AuthorizationTerms, lockTestAuthorization, lockTestCard } from './terms.ts';
import { type Merchant, presentTransaction, type TransactionRow } from './transaction-resource.ts';
import { type AuthorizationChange, respondWithChange } from './write-change.ts';

// A merchant takes its money. The network has already moved it, so a clearing is never declined: what its hold and the card
// can't pay, the prepaid balance pays.

/** A clearing as the network reports it, or a partner simulates it. */
interface Clearing {
  amountCents: number;
  /** Whether it is the last one of its authorization, so that nothing stays held. */
  isFinal: boolean;
  merchant: Merchant;
  /** The network's id of the clearing. */
  messageId: string;
  /** The network's id of what it is part of; null if it has none. */
  networkPaymentId?: string | null;
}

/**
 * Books a clearing (docs/partners/authorizations.md).
 * @param before the authorization; null for a clearing without one
 * @throws ApiError `validation_failed` if the fee would exceed the largest safe integer
 */
export function bookClearing(
  terms: AuthorizationTerms,
  before: AuthorizationRow | null,
  clearing: Clearing,
): AuthorizationChange & { transaction: TransactionRow } {
  const { card, balance, clock, feePlan, prepaidCents } = terms;
  const { amountCents, merchant } = clearing;
  const heldCents = Number(before?.held_cents ?? 0);
  const availableCents = balance.balanceCents - balance.heldCents;
  const shares = clearingShares(amountCents, { heldCents, availableCents });
  const authorization = before && withState(before, clearedState(toState(before), clearing));

  const paid = {
    balanceCents: balance.balanceCents - shares.fromHoldCents - shares.fromAvailableCents,
    heldCents: balance.heldCents - heldCents + Number(authorization?.held_cents ?? 0),
  };
  const release = before && releaseFromBlocked(card, before, paid, prepaidCents - shares.fromPartnerCents);
  const after = { ...paid, balanceCents: paid.balanceCents - (release?.releasedCents ?? 0) };

  const id = newId('txn');
  const chargedTo = decideChargedTo(amountCents, shares.fromPartnerCents);
  const transaction: TransactionRow = {
    id,
    partner_id: card.partner_id,
    mode: card.mode,
    card_id: card.id,
    network_transaction_id: clearing.messageId,
    requested_type: 'purchase',
    forced: true,
    type: 'purchase',
    amount_cents: String(amountCents),
    fees: transactionFees(feePlan, 'purchase', amountCents),
    merchant_name: merchant.name,
    merchant_category_code: merchant.category_code,
    merchant_city: merchant.city,
    merchant_country: merchant.country,
    decline_reason: null,
    charged_to: chargedTo,
    card_balance_after_cents: String(after.balanceCents),
    created_at: accountTime(clock, readIdTime(id)).toISOString(),
    authorization_id: before?.id ?? null,
    from_hold_cents: String(shares.fromHoldCents),
    partner_balance_cents: chargedTo === 'both' ? String(shares.fromPartnerCents) : null,
    network_payment_id: clearing.networkPaymentId ?? null,
    refunded_transaction_id: null,
  };
  const hold = before && authorization && holdPosting(before, authorization, shares.fromHoldCents);
  const postings = [hold, settlementPosting(transaction), release?.posting];
  return {
    card,
    balance: after,
    clock,
    authorization,
    transaction,
    postings: postings.filter((posting) => posting != null),
    events:
      authorization === null
        ? ['card.transaction.created']
        : ['card.authorization.updated', 'card.transaction.created'],
  };
}

function decideChargedTo(amountCents: number, fromPartnerCents: number): ChargedTo {
  if (fromPartnerCents === 0) return 'card';
  return fromPartnerCents === amountCents ? 'partner_balance' : 'both';
}

/**
 * Clears an authorization of a test card, whether or not it is still pending.
 * @param asked.amountCents undefined for all that is left
 * @throws ApiError `authorization_not_found`, `idempotency_conflict`, `validation_failed` if nothing is left and the amount is
 *   missing; without an Idempotency-Key also `invalid_state`, which is otherwise a stored response
 */
export function captureInTestMode(
  context: CommandContext,
  request: KeyedRequest,
  authorizationId: string,
  asked: { amountCents: number | undefined; isFinal: boolean; messageId: string },
): Promise<KeyedResponse> {
  return respondOnce(context, request, async (tx) => {
    const command = { tx, ring: context.ring };
    const terms = await lockTestAuthorization(command, request, authorizationId);
    if ('replayed' in terms) return terms;
    const { authorization } = terms;
    if (authorization.status === 'declined') {
      throw new ApiError('invalid_state', {
        message: 'The authorization was declined. A declined one cannot be cleared.',
      });
    }
    const leftCents = Math.max(0, Number(authorization.amount_cents) - Number(authorization.settled_cents));
    const amountCents = asked.amountCents ?? leftCents;
    if (amountCents === 0) {
      throw ApiError.ofField('amount', 'amount is required, because nothing is left to clear');
    }
    const merchant = toMerchant(authorization);
    const change = bookClearing(terms, authorization, { ...asked, amountCents, merchant });
    const body = JSON.stringify(presentTransaction(change.transaction));
    return respondWithChange(command, request, change, { status: 201, body });
  });
}

/**
 * Books a clearing without an authorization on a test card.
 * @throws ApiError `card_not_found`, `idempotency_conflict`; without an Idempotency-Key also `invalid_state`
 */
export function forceCaptureInTestMode(
  context: CommandContext,
  request: KeyedRequest,
  asked: { amountCents: number; merchant: Merchant; messageId: string },
): Promise<KeyedResponse> {
  return respondOnce(context, request, async (tx) => {
    const command = { tx, ring: context.ring };
    const terms = await lockTestCard(command, request);
    if ('replayed' in terms) return terms;
    requireIssued(terms);
    const change = bookClearing(terms, null, { ...asked, isFinal: true });
    const body = JSON.stringify(presentTransaction(change.transaction));
    return respondWithChange(command, request, change, { status: 201, body });
  });
}

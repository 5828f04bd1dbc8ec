import { decisionTime } from '../cards/applied-controls.ts';
import { accountTime } from '../domain/account-clock.ts';
import { ApiError } from '../domain/api-error.ts';
import {
  type AuthorizationRequest,
  approvedState,
  type DeclineReason,
  decideDecline,
  incrementedState,
  MAX_REQUESTS,
} from '../domain/authorization.ts';
import { type ControlledRequest, refusalByControls } from '../domain/spending-controls.ts';
import { transactionFees } from '../domain/transaction.ts';
import { newId, readIdTime } from '../platform/crypto/new-id.ts';
import type { AuthorizationRow } from './authorization-resource.ts';
import { settlementPosting } from './decide-settlements.ts';
import { holdPosting, toMerchant, toState, withState } from './holds.ts';
import type { AuthorizationTerms, DecisionTerms } from './terms.ts';
import type { Merchant, TransactionRow } from './transaction-resource.ts';
import type { AuthorizationChange, ChangedAuthorization } from './write-change.ts';

// A merchant asks for money on a card, or for more of it. The card's lock is held from the decision to the
// commit, so however many ask at once, a card never holds more than it has.

/** A request for an authorization. */
export interface AuthorizationAsked {
  amountCents: number;
  merchant: Merchant;
  /** The network's id of the request; a decline's transaction has it too. */
  messageId: string;
  /** The network's id of the authorization; null in test mode. */
  networkAuthorizationId: string | null;
  /** How long it holds its amount at most. */
  ttlMs: number;
}

/** A request to increase an authorization. */
export type IncrementAsked = Pick<AuthorizationAsked, 'amountCents' | 'messageId'>;

/**
 * Decides on an authorization (docs/partners/authorizations.md): all of the amount is held, or nothing.
 * @param cleared what was cleared of it before, because a clearing overtook it: only the rest has to be on
 * the card
 * @throws ApiError `validation_failed` if a decline's fee would exceed the largest safe integer
 */
export function decideAuthorization(
  terms: DecisionTerms,
  asked: AuthorizationAsked,
  cleared: { cents: number; isFinal: boolean } = { cents: 0, isFinal: false },
): ChangedAuthorization {
  const { card, balance, clock } = terms;
  const { amountCents, merchant } = asked;
  const state = approvedState(amountCents, cleared);
  // What was cleared of it counts already.
  const countedCents = (state.status === 'pending' ? amountCents : state.settledCents) - cleared.cents;
  const reason = decideRefusal(terms, state.heldCents, {
    amountCents: countedCents,
    wholeCents: amountCents,
    categoryCode: merchant.category_code,
    country: merchant.country,
  });
  const id = newId('auth', decisionTime(terms.controls, terms.askedAt, clock));
  const created = accountTime(clock, readIdTime(id));
  const authorization: AuthorizationRow = {
    id,
    partner_id: card.partner_id,
    mode: card.mode,
    card_id: card.id,
    network_authorization_id: asked.networkAuthorizationId,
    status: reason === null ? state.status : 'declined',
    amount_cents: String(amountCents),
    held_cents: String(reason === null ? state.heldCents : 0),
    settled_cents: String(reason === null ? state.settledCents : 0),
    target_cents: null,
    decline_reason: reason,
    merchant_name: merchant.name,
    merchant_category_code: merchant.category_code,
    merchant_city: merchant.city,
    merchant_country: merchant.country,
    requests: [toRequest('authorization', amountCents, reason, created)],
    holds: reason === null && state.heldCents > 0 ? 1 : 0,
    expires_at: reason === null ? new Date(created.getTime() + asked.ttlMs).toISOString() : null,
    created_at: created.toISOString(),
  };
  if (reason !== null) {
    const declined = recordDecline(terms, { ...asked, authorizationId: id }, reason);
    return { ...declined, authorization, events: ['card.authorization.created', 'card.transaction.created'] };
  }
  const held = holdPosting(null, authorization);
  return {
    card,
    balance: { ...balance, heldCents: balance.heldCents + state.heldCents },
    clock,
    authorization,
    transaction: null,
    postings: held === null ? [] : [held],
    events: ['card.authorization.created'],
  };
}

/**
 * Decides on an increment: the same decision on the additional amount. A declined one leaves the
 * authorization as it was, but for its requests.
 * @throws ApiError as {@link decideAuthorization}
 */
export function decideIncrement(
  terms: DecisionTerms,
  before: AuthorizationRow,
  asked: IncrementAsked,
): ChangedAuthorization {
  const { card, balance, clock } = terms;
  const { amountCents } = asked;
  const reason = isOver(before)
    ? 'authorization_not_pending'
    : decideRefusal(terms, amountCents, {
        amountCents,
        wholeCents: Number(before.amount_cents) + amountCents,
        categoryCode: before.merchant_category_code,
        country: before.merchant_country,
      });
  const request = toRequest('increment', amountCents, reason, accountTime(clock));
  const requests = [...before.requests, request].slice(0, MAX_REQUESTS);
  if (reason !== null) {
    const merchant = toMerchant(before);
    const declined = recordDecline(terms, { ...asked, merchant, authorizationId: before.id }, reason);
    return { ...declined, authorization: { ...before, requests }, events: ['card.transaction.created'] };
  }
  const authorization = withState({ ...before, requests }, incrementedState(toState(before), amountCents));
  const held = holdPosting(before, authorization);
  return {
    card,
    balance: { ...balance, heldCents: balance.heldCents + amountCents },
    clock,
    authorization,
    transaction: null,
    postings: held === null ? [] : [held],
    events: ['card.authorization.updated'],
  };
}

/**
 * Whether an authorization can't be increased any more: it has ended, or has had as many requests as it can
 * have.
 */
const isOver = ({ status, requests }: AuthorizationRow): boolean =>
  status !== 'pending' || requests.length >= MAX_REQUESTS;

function decideRefusal(
  { card, balance, controls }: DecisionTerms,
  amountCents: number,
  request: ControlledRequest,
): DeclineReason | null {
  const availableCents = balance.balanceCents - balance.heldCents;
  const refusedByControls = refusalByControls(controls, request);
  return decideDecline({ status: card.status, availableCents }, amountCents, refusedByControls);
}

export function toRequest(
  type: AuthorizationRequest['type'],
  amountCents: number,
  reason: DeclineReason | null,
  created: Date,
): AuthorizationRequest {
  return {
    type,
    amount: amountCents,
    approved: reason === null,
    decline_reason: reason,
    created: created.toISOString(),
  };
}

/**
 * A declined request: nothing is held, and a transaction records it with its fee.
 * @param asked.authorizationId null if it is of no authorization that we know
 * @throws ApiError `validation_failed` if the fee would exceed the largest safe integer
 */
export function recordDecline(
  { card, balance, feePlan, clock }: AuthorizationTerms,
  asked: IncrementAsked & { merchant: Merchant; authorizationId: string | null },
  reason: DeclineReason,
): Omit<AuthorizationChange, 'events' | 'authorization'> & { transaction: TransactionRow } {
  const { amountCents, messageId, merchant } = asked;
  const id = newId('txn');
  const transaction: TransactionRow = {
    id,
    partner_id: card.partner_id,
    mode: card.mode,
    card_id: card.id,
    network_transaction_id: messageId,
    requested_type: 'purchase',
    forced: false,
    type: 'decline',
    amount_cents: String(amountCents),
    fees: transactionFees(feePlan, 'decline', amountCents),
    merchant_name: merchant.name,
    merchant_category_code: merchant.category_code,
    merchant_city: merchant.city,
    merchant_country: merchant.country,
    decline_reason: reason,
    charged_to: 'card',
    card_balance_after_cents: String(balance.balanceCents),
    created_at: accountTime(clock, readIdTime(id)).toISOString(),
    authorization_id: asked.authorizationId,
    from_hold_cents: '0',
    partner_balance_cents: null,
    network_payment_id: null,
    refunded_transaction_id: null,
  };
  const fee = settlementPosting(transaction);
  return { card, balance, clock, transaction, postings: fee === null ? [] : [fee] };
}

/** @throws ApiError `invalid_state` if the card was not issued */
export function requireIssued({ card: { status } }: AuthorizationTerms): void {
  if (status !== 'funding_pending' && status !== 'failed') return;
  throw new ApiError('invalid_state', {
    message: `The card is ${status}. A card that was not issued cannot be used.`,
  });
}

import { accountTime } from '../domain/account-clock.ts';
import {
  type AuthorizationState,
  approvedState,
  incrementedState,
  leftOf,
  MAX_REQUESTS,
} from '../domain/authorization.ts';
import { newId, readIdTime } from '../platform/crypto/new-id.ts';
import type { AuthorizationRow } from './authorization-resource.ts';
import { recordDecline, toRequest } from './decide.ts';
import { reverse } from './end.ts';
import { holdPosting, toMerchant, toState, withState } from './holds.ts';
import type { MessageTerms } from './terms.ts';
import type { Merchant } from './transaction-resource.ts';
import type { AuthorizationChange, ChangedAuthorization } from './write-change.ts';

// The issuer decided otherwise than we did, or without us. It is booked whatever our rules say, because the
// issuer answers to the merchant (docs/partners/authorizations.md, "If the issuer decides").

/** A decision of the issuer's on a request. */
export interface ToldDecision {
  amountCents: number;
  merchant: Merchant;
  messageId: string;
  networkAuthorizationId: string | null;
  /** When the issuer lets the authorization expire; null if it does not say. */
  expiresAt: string | null;
  /** How long it holds its amount otherwise. */
  ttlMs: number;
}

/**
 * The issuer approved a request: it holds what is available of its amount.
 * @param before its authorization: a declined one becomes pending, any other is increased; null for a new one
 * @param isOurs whether it is a request of `before` that we declined
 */
export function bookApproval(
  terms: MessageTerms,
  before: AuthorizationRow | null,
  told: ToldDecision,
  isOurs: boolean,
): ChangedAuthorization {
  const { card, cleared, clock } = terms;
  const { amountCents, merchant } = told;
  const availableCents = availableOf(terms);
  const id = before?.id ?? newId('auth');
  const now = before === null ? accountTime(clock, readIdTime(id)) : accountTime(clock);
  const request = toRequest(before === null ? 'authorization' : 'increment', amountCents, null, now);
  const row: AuthorizationRow = before ?? {
    id,
    partner_id: card.partner_id,
    mode: card.mode,
    card_id: card.id,
    network_authorization_id: told.networkAuthorizationId,
    status: 'pending',
    amount_cents: '0',
    held_cents: '0',
    settled_cents: '0',
    target_cents: null,
    decline_reason: null,
    merchant_name: merchant.name,
    merchant_category_code: merchant.category_code,
    merchant_city: merchant.city,
    merchant_country: merchant.country,
    requests: [],
    holds: 0,
    expires_at: null,
    created_at: now.toISOString(),
  };
  const isNew = before === null || before.status === 'declined';
  const state = isNew
    ? approvedState(amountCents, cleared, availableCents)
    : incrementedState(toState(before), amountCents, availableCents);
  const ownExpiry =
    before?.status === 'pending' ? before.expires_at : new Date(now.getTime() + told.ttlMs).toISOString();
  const after: AuthorizationRow = {
    ...withState(row, state),
    decline_reason: null,
    requests: isOurs
      ? withDecision(row, amountCents, null)
      : [...row.requests, request].slice(0, MAX_REQUESTS),
    expires_at: told.expiresAt ?? ownExpiry,
  };
  return {
    ...heldAs(terms, row, after),
    events: [before === null ? 'card.authorization.created' : 'card.authorization.updated'],
  };
}

/**
 * The issuer's total is more than the authorization's amount: a request that nobody decides, and which is not
 * among its requests.
 */
export function raise(
  terms: MessageTerms,
  before: AuthorizationRow,
  amountCents: number,
): ChangedAuthorization {
  const after = withState(before, incrementedState(toState(before), amountCents, availableOf(terms)));
  return { ...heldAs(terms, before, after), events: ['card.authorization.updated'] };
}

const availableOf = ({ balance }: MessageTerms): number =>
  Math.max(0, balance.balanceCents - balance.heldCents);

function heldAs(
  { card, balance, clock }: MessageTerms,
  before: AuthorizationRow,
  after: AuthorizationRow,
): Omit<ChangedAuthorization, 'events'> {
  const posting = holdPosting(before, after);
  const heldCents = balance.heldCents - Number(before.held_cents) + Number(after.held_cents);
  return {
    card,
    balance: { ...balance, heldCents },
    clock,
    authorization: after,
    transaction: null,
    postings: posting === null ? [] : [posting],
  };
}

/**
 * The issuer declined a request that it never asked us about: a decline with its fee. An authorization that
 * we know shows it among its requests, and stays as it is.
 */
export function bookDecline(
  terms: MessageTerms,
  before: AuthorizationRow | null,
  { amountCents, merchant, messageId }: ToldDecision,
): AuthorizationChange {
  const asked = { amountCents, merchant, messageId, authorizationId: before?.id ?? null };
  const request = toRequest('increment', amountCents, 'declined_by_network', accountTime(terms.clock));
  const requests = before === null ? [] : [...before.requests, request].slice(0, MAX_REQUESTS);
  return {
    ...recordDecline(terms, asked, 'declined_by_network'),
    authorization: before && { ...before, requests },
    events: ['card.transaction.created'],
  };
}

/**
 * The issuer declined a request that was approved: what it holds is given back, and the decline is recorded
 * with its fee.
 */
export function takeBackApproval(
  terms: MessageTerms,
  before: AuthorizationRow,
  asked: { amountCents: number; messageId: string },
): ChangedAuthorization {
  const { amountCents } = asked;
  const state: AuthorizationState = toState(before);
  const given =
    before.status === 'pending' ? reverse(terms, before, Math.min(amountCents, leftOf(state))) : null;
  const after = given?.authorization ?? before;
  const authorization = { ...after, requests: withDecision(before, amountCents, 'declined_by_network') };
  const balance = given?.balance ?? terms.balance;
  const events = given?.events ?? [];
  // It was declined once already, when we did.
  if (terms.transactionId !== null) {
    return {
      card: terms.card,
      balance,
      clock: terms.clock,
      authorization,
      transaction: null,
      postings: given?.postings ?? [],
      events,
    };
  }
  const declined = recordDecline(
    { ...terms, balance },
    { ...asked, merchant: toMerchant(before), authorizationId: before.id },
    'declined_by_network',
  );
  return {
    ...declined,
    authorization,
    postings: [...(given?.postings ?? []), ...declined.postings],
    events: [...events, 'card.transaction.created'],
  };
}

/** The authorization's requests, with the opposite decision on the latest one of this amount. */
function withDecision(
  { requests }: AuthorizationRow,
  amountCents: number,
  reason: 'declined_by_network' | null,
): AuthorizationRow['requests'] {
  const approved = reason === null;
  const place = requests.findLastIndex(
    (request) => request.amount === amountCents && request.approved !== approved,
  );
  return requests.map((request, index) =>
    index === place ? { ...request, approved, decline_reason: reason } : request,
  );
}

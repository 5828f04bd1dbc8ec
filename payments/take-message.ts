import { ApiError } from '../domain/api-error.ts';
import { decideDecline, leftOf } from '../domain/authorization.ts';
import { refusalByControls } from '../domain/spending-controls.ts';
import type { Transactor } from '../platform/db/sql.ts';
import type { AuthorizationRow } from './authorization-resource.ts';
import { bookClearing } from './clear.ts';
import { decideAuthorization, decideIncrement, requireIssued } from './decide.ts';
import { expire, reverse } from './end.ts';
import { toState } from './holds.ts';
import {
  type AuthorizationMessage,
  authorizationOf,
  decideAnew,
  findDecided,
  finish,
  knownTransaction,
  linkClearings,
  type MessageOutcome,
  outcomeOf,
} from './message-record.ts';
import { type KnownMessage, lockMessageTerms, type MessageTerms } from './terms.ts';
import { bookApproval, bookDecline, raise, type ToldDecision, takeBackApproval } from './told-decisions.ts';
import type { Merchant, TransactionRow } from './transaction-resource.ts';
import { type AuthorizationChange, type NewMessage, writeChange } from './write-change.ts';

// What the card network says about authorizations: it asks for the first two types, and reports the others. A
// message has an id of the network's. Repeated, it gets the same result and changes nothing
// (docs/operating.md, "Authorizations on the simulated network"). Only approvals and declines have the id of
// another message, of the request that they tell the decision on.

/** A reversal, an expiry or a total of an authorization that we don't know: its request may still arrive. */
export class AuthorizationUnknown extends Error {}

/**
 * Takes a message in the caller's transaction. A decision takes three round trips with BEGIN and COMMIT.
 * @param limits.ttlMs how long an authorization holds its amount at most
 * @param limits.lockWaitMs how long to wait for the card's lock before PostgreSQL's error; null for the
 * session's limit
 * @throws ApiError `card_not_found`, `invalid_state` if the card was not issued, `idempotency_conflict` if
 *   the id of the message or of the authorization was used for something else, `validation_failed` if a
 *   balance would leave the safe integers
 * @throws AuthorizationUnknown
 */
export async function takeMessage(
  tx: Transactor,
  message: AuthorizationMessage,
  { ttlMs, lockWaitMs }: { ttlMs: number; lockWaitMs: number | null },
): Promise<MessageOutcome> {
  const { cardId, networkCardId, messageId, networkAuthorizationId, merchant } = message;
  const terms = await lockMessageTerms(tx, {
    cardId,
    authorizationId: null,
    networkAuthorizationId,
    messageId,
    decides: message.type === 'authorization' || message.type === 'increment',
    lockWaitMs,
  });
  if (terms === null || terms.card.partner_id !== message.partnerId || terms.card.mode !== message.mode) {
    throw new ApiError('card_not_found');
  }
  if (networkCardId !== null && terms.card.network_card_id !== networkCardId) {
    throw new ApiError('card_not_found');
  }
  if (terms.known !== null) {
    const { known } = terms;
    if (message.type === 'approval' || message.type === 'decline') {
      if (known.card_id !== cardId || !isDecision(known)) throw usedOtherwise('message');
      return takeDecision(tx, { ...terms, known }, message, ttlMs);
    }
    if (
      message.type === 'clearing' &&
      message.isFinal &&
      known.type === 'clearing' &&
      known.is_final === false
    ) {
      return takeFinality(tx, terms, message, known);
    }
    return repeat(tx, message, known);
  }
  if (terms.transactionId !== null) return repeatPurchase(tx, message, terms.transactionId);
  if (terms.authorization !== null && terms.authorization.card_id !== cardId)
    throw usedOtherwise('authorization');
  requireIssued(terms);

  const amountCents = message.amountCents ?? 0;
  const before = terms.authorization;
  switch (message.type) {
    case 'authorization':
    case 'increment': {
      if (amountCents === 0) return decideZero(terms, merchant);
      const asked = { amountCents, merchant, messageId, networkAuthorizationId, ttlMs };
      if (before !== null && message.type === 'authorization') throw usedOtherwise('authorization');
      const change =
        before === null
          ? decideAuthorization(terms, asked, terms.cleared)
          : decideIncrement(terms, before, asked);
      const outcome = await write(tx, message, change);
      const isApproved = before === null && outcome.declineReason === null;
      if (isApproved && terms.cleared.cents > 0) await linkClearings(tx, message, outcome.authorization);
      return outcome;
    }
    case 'clearing': {
      // A declined authorization has nothing to clear: the clearing is one without.
      const cleared = before?.status === 'declined' ? null : before;
      const { isFinal, networkPaymentId = null } = message;
      const clearing = { amountCents, isFinal, merchant, messageId, networkPaymentId };
      return write(tx, message, bookClearing(terms, cleared, clearing));
    }
    case 'reversal':
    case 'expiry': {
      if (before === null) throw new AuthorizationUnknown(`the network's authorization is not known`);
      if (before.status !== 'pending') return write(tx, message, nothing(terms), before);
      if (message.type === 'expiry') return write(tx, message, expire(terms, before));
      const leftCents = leftOf(toState(before));
      const backCents = Math.min(message.amountCents ?? leftCents, leftCents);
      return write(tx, message, reverse(terms, before, backCents));
    }
    case 'approval':
    case 'decline': {
      const known = before === null ? null : await findDecided(tx, message, message.type, before);
      if (before !== null && known !== null) {
        // It tells the decision on a request that we know, under an id of its own.
        if (known === message.type) return takeExpiry(tx, terms, message, before);
        return write(tx, message, takeBackApproval(terms, before, { amountCents, messageId }));
      }
      const decision = toTold(message, ttlMs);
      if (message.type === 'decline') return write(tx, message, bookDecline(terms, before, decision));
      const outcome = await write(tx, message, bookApproval(terms, before, decision, false));
      if (terms.cleared.cents > 0) await linkClearings(tx, message, outcome.authorization);
      return outcome;
    }
    case 'total': {
      if (before === null) throw new AuthorizationUnknown(`the network's authorization is not known`);
      const moreCents = amountCents - Number(before.amount_cents);
      if (before.status !== 'pending' || moreCents === 0) return write(tx, message, nothing(terms), before);
      if (moreCents > 0) return write(tx, message, raise(terms, before, moreCents));
      return write(tx, message, reverse(terms, before, Math.min(-moreCents, leftOf(toState(before)))));
    }
  }
}

/** Whether a message asks for a decision, or tells one. */
const isDecision = ({ type }: Pick<KnownMessage, 'type'>): boolean =>
  type === 'authorization' || type === 'increment' || type === 'approval' || type === 'decline';

/**
 * Takes an approval or a decline of a request that has been decided here, or told before. The same decision
 * again changes nothing but when the authorization expires; the opposite one is what counts.
 */
async function takeDecision(
  tx: Transactor,
  terms: MessageTerms & { known: KnownMessage },
  message: AuthorizationMessage,
  ttlMs: number,
): Promise<MessageOutcome> {
  const { known } = terms;
  const before = known.authorization_id === null ? null : await authorizationOf(tx, message, known);
  const isApproved = known.decline_reason === null;
  if (message.type === 'approval') {
    if (isApproved && before !== null) return takeExpiry(tx, terms, message, before);
    const about = before ?? terms.authorization;
    const change = bookApproval(terms, about, toTold(message, ttlMs), before !== null);
    await writeChange(tx, change, null);
    await decideAnew(tx, message, {
      declineReason: null,
      authorizationId: change.authorization.id,
      transactionId: known.transaction_id,
    });
    if (terms.cleared.cents > 0) await linkClearings(tx, message, change.authorization);
    return { replayed: false, declineReason: null, authorization: change.authorization, transaction: null };
  }
  if (!isApproved || before === null) return outcomeOf(tx, message, known);
  const { messageId } = message;
  const change = takeBackApproval(terms, before, { amountCents: Number(known.amount_cents), messageId });
  await writeChange(tx, change, null);
  const declineReason = 'declined_by_network';
  const { authorization, transaction } = change;
  await decideAnew(tx, message, {
    declineReason,
    authorizationId: authorization.id,
    transactionId: transaction?.id ?? known.transaction_id,
  });
  return { replayed: false, declineReason, authorization, transaction };
}

/** The issuer tells a decision that we know, and perhaps when the authorization expires. */
async function takeExpiry(
  tx: Transactor,
  terms: MessageTerms,
  { expiresAt = null }: AuthorizationMessage,
  before: AuthorizationRow,
): Promise<MessageOutcome> {
  const isOther =
    before.status === 'pending' &&
    expiresAt !== null &&
    (before.expires_at === null || Date.parse(expiresAt) !== new Date(before.expires_at).getTime());
  const authorization = isOther ? { ...before, expires_at: expiresAt } : before;
  if (isOther) await writeChange(tx, { ...nothing(terms), authorization }, null);
  return { replayed: !isOther, declineReason: null, authorization, transaction: null };
}

const toTold = (message: AuthorizationMessage, ttlMs: number): ToldDecision => ({
  amountCents: message.amountCents ?? 0,
  merchant: message.merchant,
  messageId: message.messageId,
  networkAuthorizationId: message.networkAuthorizationId,
  expiresAt: message.expiresAt ?? null,
  ttlMs,
});

/** A request for 0 cents asks whether the card can be used. It leaves no record. */
function decideZero({ card, controls }: MessageTerms, merchant: Merchant): MessageOutcome {
  const refusedByControls = refusalByControls(controls, {
    amountCents: 0,
    wholeCents: 0,
    categoryCode: merchant.category_code,
    country: merchant.country,
  });
  const declineReason = decideDecline({ status: card.status, availableCents: 0 }, 0, refusedByControls);
  return { replayed: false, declineReason, authorization: null, transaction: null };
}

const nothing = ({ card, balance, clock }: MessageTerms): AuthorizationChange => ({
  card,
  balance,
  clock,
  authorization: null,
  transaction: null,
  postings: [],
  events: [],
});

/** @param about the authorization of a message that changes nothing */
async function write(
  tx: Transactor,
  message: AuthorizationMessage,
  change: AuthorizationChange,
  about: AuthorizationRow | null = change.authorization,
): Promise<MessageOutcome> {
  const declineReason = change.transaction?.decline_reason ?? null;
  const row: NewMessage = {
    message_id: message.messageId,
    type: message.type,
    network_authorization_id: message.networkAuthorizationId,
    amount_cents: message.amountCents,
    is_final: message.type === 'clearing' ? message.isFinal : null,
    authorization_id: about?.id ?? null,
    transaction_id: change.transaction?.id ?? null,
    decline_reason: declineReason,
  };
  await writeChange(tx, change, row);
  return { replayed: false, declineReason, authorization: about, transaction: change.transaction };
}

/** @throws ApiError `idempotency_conflict` if it is another message under the same id */
async function repeat(
  tx: Transactor,
  message: AuthorizationMessage,
  known: KnownMessage,
): Promise<MessageOutcome> {
  const isRequest = message.type === 'authorization' || message.type === 'increment';
  // The issuer has decided without us, and told us before its question arrived.
  const isDecided = isRequest && (known.type === 'approval' || known.type === 'decline');
  const isSame =
    known.card_id === message.cardId &&
    (isDecided ||
      (known.type === message.type &&
        known.network_authorization_id === message.networkAuthorizationId &&
        (known.amount_cents === null ? null : Number(known.amount_cents)) === message.amountCents));
  if (!isSame) throw usedOtherwise('message');
  const outcome = await outcomeOf(tx, message, known);
  // The merchant of other types is not stored: it decides nothing. What is told again as final may describe
  // it differently.
  const isAsked = known.type === 'authorization' && message.type === 'authorization';
  const isCleared = known.type === 'clearing' && known.is_final === message.isFinal;
  const made = isAsked ? outcome.authorization : isCleared ? outcome.transaction : null;
  if (message.merchantMayChange === true) return outcome;
  if (made !== null && !isSameMerchant(made, message.merchant)) throw usedOtherwise('message');
  return outcome;
}

/**
 * A clearing without an authorization may have been taken as a purchase before: both say that the network has
 * moved the amount.
 * @throws ApiError `idempotency_conflict` if the transaction is anything else, such as a purchase that was
 * declined here
 */
async function repeatPurchase(
  tx: Transactor,
  message: AuthorizationMessage,
  transactionId: string,
): Promise<MessageOutcome> {
  const { partnerId, mode } = message;
  const [transaction] = await knownTransaction(tx, { partnerId, mode, id: transactionId });
  const isSame =
    message.type === 'clearing' &&
    message.networkAuthorizationId === null &&
    transaction !== undefined &&
    transaction.type === 'purchase' &&
    transaction.authorization_id === null &&
    transaction.card_id === message.cardId &&
    Number(transaction.amount_cents) === message.amountCents;
  if (!isSame) throw usedOtherwise('message');
  return { replayed: true, declineReason: null, authorization: null, transaction };
}

const isSameMerchant = (row: AuthorizationRow | TransactionRow, merchant: Merchant): boolean =>
  row.merchant_name === merchant.name &&
  row.merchant_category_code === merchant.category_code &&
  row.merchant_city === merchant.city &&
  row.merchant_country === merchant.country;

/** A clearing turns out to be the last one: nothing more is held for its authorization. */
async function takeFinality(
  tx: Transactor,
  terms: MessageTerms,
  message: AuthorizationMessage,
  known: KnownMessage,
): Promise<MessageOutcome> {
  const outcome = await repeat(tx, message, known);
  const { partnerId, mode, messageId } = message;
  await finish(tx, { partnerId, mode, messageId });
  if (outcome.authorization?.status !== 'pending') return outcome;
  const change = expire(terms, outcome.authorization);
  await writeChange(tx, change, null);
  return { ...outcome, replayed: false, authorization: change.authorization };
}

function usedOtherwise(id: 'message' | 'authorization'): ApiError {
  return new ApiError('idempotency_conflict', {
    message:
      id === 'message'
        ? 'A different message of the network was already taken under this id, and this one was not.'
        : "The network's id of the authorization belongs to another one, and this message was not taken.",
  });
}

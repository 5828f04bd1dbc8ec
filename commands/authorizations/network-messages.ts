import { sql } from 'kysely';
import { AUTHORIZATION_COLUMNS, TRANSACTION_COLUMNS } from '../../db/columns.ts';
import { readStatement, type Transactor, writeStatement } from '../../db/sql.ts';
import { ApiError } from '../../domain/api-error.ts';
import {
  type AuthorizationMessageType,
  type DeclineReason,
  decideDecline,
  findDecision,
  leftOf,
  MAX_REQUESTS,
} from '../../domain/authorization.ts';
import type { Tenant } from '../../domain/mode.ts';
import { refusalByControls } from '../../domain/spending-controls.ts';
import type { AuthorizationRow } from '../../resources/authorization.ts';
import type { Merchant, TransactionRow } from '../../resources/transaction.ts';
import { bookClearing } from './clear.ts';
import { decideAuthorization, decideIncrement, requireIssued } from './decide.ts';
import { expire, reverse } from './end.ts';
import { toState } from './holds.ts';
import { type KnownMessage, lockMessageTerms, type MessageTerms } from './terms.ts';
import { bookApproval, bookDecline, raise, type ToldDecision, takeBackApproval } from './told-decisions.ts';
import { type AuthorizationChange, type NewMessage, writeChange } from './write-change.ts';

// What the card network says about authorizations: it asks for the first two types, and reports the others. A message has an id
// of the network's. Repeated, it gets the same result and changes nothing (docs/operating.md, "Authorizations on the simulated
// network"). Only approvals and declines have the id of another message, of the request that they tell the decision on.

/** A message about a card of this account and mode. */
export interface AuthorizationMessage extends Tenant {
  cardId: string;
  /** The network's id of the card, which the card must still have; null if it was named by its own id. */
  networkCardId: string | null;
  type: AuthorizationMessageType;
  /** The network's id of the message, unique in the mode. */
  messageId: string;
  /** The network's id of the authorization; null for a clearing without one. */
  networkAuthorizationId: string | null;
  /** Null for a reversal of all that is left, and for an expiry. A request can be for 0. */
  amountCents: number | null;
  /** Whether a clearing is the last one. */
  isFinal: boolean;
  merchant: Merchant;
  /** Whether the network may describe the merchant differently when it repeats the message. */
  merchantMayChange?: boolean;
  /** Of an approval: when the issuer lets the authorization expire; null if it does not say. */
  expiresAt?: string | null;
  /**
   * Of an approval or a decline that does not name its request: the request's place among the authorization's requests of the same
   * amount, from 1. An approval's is among the approved ones, a decline's among all.
   */
  place?: number | null;
  /** The network's id of what it is part of; null if it has none. */
  networkPaymentId?: string | null;
}

/** What became of a message. */
export interface MessageOutcome {
  /** It was taken before, so nothing happened this time. */
  replayed: boolean;
  /** Why a request was declined; null if it was approved, and for what is no request. */
  declineReason: DeclineReason | null;
  /** As the message left it, or as it is now if the message is repeated. Null without one. */
  authorization: AuthorizationRow | null;
  /** A decline or a clearing. */
  transaction: TransactionRow | null;
}

/** A reversal, an expiry or a total of an authorization that we don't know: its request may still arrive. */
export class AuthorizationUnknown extends Error {}

/**
 * Takes a message in the caller's transaction. A decision takes three round trips with BEGIN and COMMIT.
 * @param limits.ttlMs how long an authorization holds its amount at most
 * @param limits.lockWaitMs how long to wait for the card's lock before PostgreSQL's error; null for the session's limit
 * @throws ApiError `card_not_found`, `invalid_state` if the card was not issued, `idempotency_conflict` if the id of the message
 *   or of the authorization was used for something else, `validation_failed` if a balance would leave the safe integers
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

/** How we decided the request that a decision of the issuer's is about; null if it is none that we know. */
async function findDecided(
  tx: Transactor,
  { partnerId, mode, cardId, networkAuthorizationId, amountCents, place = null }: AuthorizationMessage,
  type: 'approval' | 'decline',
  { id: authorizationId, requests }: AuthorizationRow,
): Promise<'approval' | 'decline' | null> {
  if (place === null || amountCents === null) return null;
  let declines = { early: 0, recorded: 0 };
  if (type === 'decline' && networkAuthorizationId !== null) {
    const about = { partnerId, mode, cardId, networkAuthorizationId, authorizationId, amountCents };
    const [counted] = await countDeclines(tx, { ...about, isFull: requests.length >= MAX_REQUESTS });
    if (counted !== undefined) declines = counted;
  }
  return findDecision(requests, { type, amountCents, place }, declines);
}

interface DeclinesCounted extends Tenant {
  cardId: string;
  networkAuthorizationId: string;
  authorizationId: string;
  amountCents: number;
  /** Whether recorded declines matter. */
  isFull: boolean;
}

const countDeclines = writeStatement(
  (_, asked: DeclinesCounted) => sql<{ early: number; recorded: number }>`
    SELECT
      (SELECT count(*)::int FROM card_authorization_message
        WHERE partner_id = ${asked.partnerId} AND mode = ${asked.mode} AND amount_cents = ${asked.amountCents}
          AND network_authorization_id = ${asked.networkAuthorizationId} AND type = 'decline'
          AND authorization_id IS NULL) AS early,
      (SELECT count(*)::int FROM card_transaction
        WHERE partner_id = ${asked.partnerId} AND mode = ${asked.mode} AND amount_cents = ${asked.amountCents}
          AND card_id = ${asked.cardId} AND type = 'decline' AND authorization_id = ${asked.authorizationId}
          AND ${asked.isFull}::boolean) AS recorded`,
);

/** Whether a message asks for a decision, or tells one. */
const isDecision = ({ type }: Pick<KnownMessage, 'type'>): boolean =>
  type === 'authorization' || type === 'increment' || type === 'approval' || type === 'decline';

/**
 * Takes an approval or a decline of a request that has been decided here, or told before. The same decision again changes nothing
 * but when the authorization expires; the opposite one is what counts.
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
    await writeChange(tx, change, { claim: null });
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
  await writeChange(tx, change, { claim: null });
  const declineReason = 'declined_by_network';
  const { authorization, transaction } = change;
  await decideAnew(tx, message, {
    declineReason,
    authorizationId: authorization.id,
    transactionId: transaction?.id ?? known.transaction_id,
  });
  return { replayed: false, declineReason, authorization, transaction };
}

interface Decided {
  declineReason: DeclineReason | null;
  authorizationId: string;
  transactionId: string | null;
}

const decideAnew = (tx: Transactor, { partnerId, mode, messageId }: AuthorizationMessage, decided: Decided) =>
  changeDecision(tx, { partnerId, mode, messageId, ...decided });

const changeDecision = writeStatement((db, values: Tenant & Decided & { messageId: string }) =>
  db
    .updateTable('card_authorization_message')
    .set({
      decline_reason: values.declineReason,
      authorization_id: values.authorizationId,
      transaction_id: values.transactionId,
    })
    .where('partner_id', '=', values.partnerId)
    .where('mode', '=', values.mode)
    .where('message_id', '=', values.messageId),
);

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
  if (isOther) await writeChange(tx, { ...nothing(terms), authorization }, { claim: null });
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
  await writeChange(tx, change, { message: row });
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
  // The merchant of other types is not stored: it decides nothing. What is told again as final may describe it differently.
  const isAsked = known.type === 'authorization' && message.type === 'authorization';
  const isCleared = known.type === 'clearing' && known.is_final === message.isFinal;
  const made = isAsked ? outcome.authorization : isCleared ? outcome.transaction : null;
  if (message.merchantMayChange === true) return outcome;
  if (made !== null && !isSameMerchant(made, message.merchant)) throw usedOtherwise('message');
  return outcome;
}

/**
 * A clearing without an authorization may have been taken as a purchase before: both say that the network has moved the amount.
 * @throws ApiError `idempotency_conflict` if the transaction is anything else, such as a purchase that was declined here
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
  await writeChange(tx, change, { claim: null });
  return { ...outcome, replayed: false, authorization: change.authorization };
}

const finish = writeStatement((db, { partnerId, mode, messageId }: Tenant & { messageId: string }) =>
  db
    .updateTable('card_authorization_message')
    .set({ is_final: true })
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .where('message_id', '=', messageId),
);

/** What became of a message before. */
async function outcomeOf(
  tx: Transactor,
  message: AuthorizationMessage,
  known: KnownMessage,
): Promise<MessageOutcome> {
  const { partnerId, mode } = message;
  const { transaction_id: id } = known;
  const authorization = await authorizationOf(tx, message, known);
  const [transaction = null] = id === null ? [] : await knownTransaction(tx, { partnerId, mode, id });
  return { replayed: true, declineReason: known.decline_reason, authorization, transaction };
}

async function authorizationOf(
  tx: Transactor,
  { partnerId, mode }: AuthorizationMessage,
  { authorization_id: id }: KnownMessage,
): Promise<AuthorizationRow | null> {
  const [authorization = null] = id === null ? [] : await knownAuthorization(tx, { partnerId, mode, id });
  return authorization;
}

type Known = Tenant & { id: string };

const knownAuthorization = readStatement((db, { partnerId, mode, id }: Known) =>
  db
    .selectFrom('card_authorization')
    .select(AUTHORIZATION_COLUMNS)
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .where('id', '=', id),
);

const knownTransaction = readStatement((db, { partnerId, mode, id }: Known) =>
  db
    .selectFrom('card_transaction')
    .select(TRANSACTION_COLUMNS)
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .where('id', '=', id),
);

/** Gives the clearings that overtook a request to its authorization, which counts them as settled. */
async function linkClearings(
  tx: Transactor,
  { partnerId, mode, cardId, networkAuthorizationId }: AuthorizationMessage,
  authorization: AuthorizationRow | null,
): Promise<void> {
  if (authorization === null || networkAuthorizationId === null) return;
  await link(tx, {
    partnerId,
    mode,
    cardId,
    networkAuthorizationId,
    authorizationId: authorization.id,
  });
}

const link = writeStatement(
  (_, values: Tenant & { cardId: string; networkAuthorizationId: string; authorizationId: string }) => sql`
    WITH linked AS (
      UPDATE card_authorization_message m SET authorization_id = ${values.authorizationId}
      WHERE m.partner_id = ${values.partnerId} AND m.mode = ${values.mode} AND m.card_id = ${values.cardId}
        AND m.network_authorization_id = ${values.networkAuthorizationId} AND m.type = 'clearing'
        AND m.authorization_id IS NULL
      RETURNING m.transaction_id
    )
    UPDATE card_transaction t SET authorization_id = ${values.authorizationId}
    FROM linked
    WHERE t.id = linked.transaction_id AND t.partner_id = ${values.partnerId} AND t.mode = ${values.mode}`,
);

function usedOtherwise(id: 'message' | 'authorization'): ApiError {
  return new ApiError('idempotency_conflict', {
    message:
      id === 'message'
        ? 'A different message of the network was already taken under this id, and this one was not.'
        : "The network's id of the authorization belongs to another one, and this message was not taken.",
  });
}

import { sql } from 'kysely';
import {
  type AuthorizationMessageType,
  type DeclineReason,
  findDecision,
  MAX_REQUESTS,
} from '../domain/authorization.ts';
import type { Tenant } from '../domain/mode.ts';
import { AUTHORIZATION_COLUMNS, TRANSACTION_COLUMNS } from '../platform/db/columns.ts';
import { readStatement, type Transactor, writeStatement } from '../platform/db/sql.ts';
import type { AuthorizationRow } from './authorization-resource.ts';
import type { KnownMessage } from './terms.ts';
import type { Merchant, TransactionRow } from './transaction-resource.ts';

// What is recorded of the card network's messages about authorizations, beside what they did:
// network-messages.ts takes them.

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
   * Of an approval or a decline that does not name its request: the request's place among the authorization's
   * requests of the same amount, from 1. An approval's is among the approved ones, a decline's among all.
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

/** What became of a message before. */
export async function outcomeOf(
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

/** The authorization that a message was about, as it is now; null if it was about none. */
export async function authorizationOf(
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

export const knownTransaction = readStatement((db, { partnerId, mode, id }: Known) =>
  db
    .selectFrom('card_transaction')
    .select(TRANSACTION_COLUMNS)
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .where('id', '=', id),
);

/** How we decided the request that a decision of the issuer's is about; null if it is none that we know. */
export async function findDecided(
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

interface Decided {
  declineReason: DeclineReason | null;
  authorizationId: string;
  transactionId: string | null;
}

/** Records that what counts of a request is another decision than the one recorded before. */
export const decideAnew = (
  tx: Transactor,
  { partnerId, mode, messageId }: AuthorizationMessage,
  decided: Decided,
) => changeDecision(tx, { partnerId, mode, messageId, ...decided });

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

/** Records that a clearing turned out to be the last one. */
export const finish = writeStatement((db, { partnerId, mode, messageId }: Tenant & { messageId: string }) =>
  db
    .updateTable('card_authorization_message')
    .set({ is_final: true })
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .where('message_id', '=', messageId),
);

/** Gives the clearings that overtook a request to its authorization, which counts them as settled. */
export async function linkClearings(
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

import type { Logger } from 'pino';
import { ApiError } from '../../domain/api-error.ts';
import type { DeclineReason } from '../../domain/authorization.ts';
import { amountBetween } from '../../domain/fields.ts';
import { MAX_AMOUNT_CENTS } from '../../domain/money.ts';
import { parseJson } from '../../domain/parse-json.ts';
import type { LithicConfig } from '../../platform/config/card-networks.ts';
import type {
  IngressRoute,
  MessageResult,
  NetworkPost,
  NetworkResponse,
  ReceivedPost,
  RequestMessage,
} from '../card-network.ts';
import { STANDARD_SIGNATURE_HEADER, verifyStandardWebhook } from '../standard-webhooks.ts';
import { snapshotTransaction, toMerchant } from './snapshot.ts';
import {
  AUTHORIZATIONS_PATH,
  AuthorizationAsked,
  EVENTS_PATH,
  moneyOf,
  Posted,
  TRANSACTION_EVENT,
  Transaction,
  TransactionName,
} from './wire.ts';

/**
 * Lithic declines for any result but APPROVED; one that it doesn't know, such as DECLINED, is shown as
 * `CUSTOM_ASA_RESULT`.
 */
const RESULTS = {
  card_frozen: 'CARD_PAUSED',
  card_blocked: 'CARD_PAUSED',
  merchant_category_not_allowed: 'UNAUTHORIZED_MERCHANT',
  merchant_country_not_allowed: 'UNAUTHORIZED_MERCHANT',
  spending_limit_exceeded: 'VELOCITY_EXCEEDED',
  insufficient_card_balance: 'INSUFFICIENT_FUNDS',
  authorization_not_pending: 'DECLINED',
  declined_by_network: 'DECLINED',
  simulated_decline: 'DECLINED',
} as const satisfies Record<DeclineReason, string>;

/** A longer transaction is read instead. */
const MAX_STATE_BYTES = 65_536;

const DONE: NetworkResponse = { status: 200, body: {} };

/**
 * What Lithic posts, each path with a secret of its own: events, which are read later, and requests of
 * Auth Stream Access, which are decided now (docs/issuers.md, "Lithic").
 */
export function lithicIngress(config: LithicConfig, logger: Logger): IngressRoute[] {
  const route = (
    path: string,
    secret: string,
    read: (post: NetworkPost, id: string) => ReceivedPost,
  ): IngressRoute => {
    const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
    return {
      path,
      signatureHeader: STANDARD_SIGNATURE_HEADER,
      verify: (post) => verifyStandardWebhook(post, [key]),
      // The signature covers the id.
      read: (post) => read(post, post.headers['webhook-id']?.toString() ?? ''),
    };
  };
  return [
    route(EVENTS_PATH, config.webhookSecret, readEvent),
    route(AUTHORIZATIONS_PATH, config.asaSecret, (post, id) => readRequest(post, id, logger)),
  ];
}

/** A transaction with all its events, or one that is only named, and has to be read. */
function readEvent({ body }: NetworkPost): ReceivedPost {
  const value = parseJson(body);
  if (Posted.safeParse(value).data?.event_type !== TRANSACTION_EVENT) {
    return { handling: 'now', messages: [], respond: () => DONE };
  }
  const whole = Transaction.safeParse(value).data;
  const id = whole?.token ?? TransactionName.safeParse(value).data?.token;
  if (id === undefined) throw ApiError.ofField('token', 'token: must be the id of a transaction');
  const stored = Buffer.from(JSON.stringify(whole ?? null));
  const isKept = whole !== undefined && stored.length <= MAX_STATE_BYTES;
  const state = isKept ? { body: stored, version: snapshotTransaction(whole).version } : null;
  const networkCardId = whole?.card_token ?? null;
  return { handling: 'later', object: { kind: 'payment', id, networkCardId, state }, response: DONE };
}

function readRequest({ body }: NetworkPost, webhookId: string, logger: Logger): ReceivedPost {
  const read = AuthorizationAsked.safeParse(parseJson(body));
  if (!read.success) {
    const paths = read.error.issues.map((issue) => issue.path.join('.') || 'body');
    throw ApiError.ofFields(paths.map((path) => ({ path, message: `${path}: can not be read` })));
  }
  const asked = read.data;
  const answer = (result: string): NetworkResponse => ({ status: 200, body: { token: asked.token, result } });
  // Whoever gives money back, or asks how much there is, takes none.
  const takesNothing = asked.status === 'BALANCE_INQUIRY' || asked.status.includes('CREDIT');
  if (takesNothing) return { handling: 'now', messages: [], respond: () => answer('APPROVED') };

  const { amountCents, currency } = moneyOf(asked.amounts);
  if (currency !== 'USD' || !AMOUNT.safeParse(amountCents).success) {
    logger.warn({ paymentId: asked.token, currency }, 'declined a request that can not be decided');
    return { handling: 'now', messages: [], respond: () => answer('DECLINED') };
  }
  const request: RequestMessage = {
    type: 'request',
    networkCardId: asked.card.token,
    paymentId: asked.token,
    key: asked.event_token ?? webhookId,
    id: asked.event_token ?? null,
    amountCents,
    merchant: toMerchant(asked.merchant),
  };
  return {
    handling: 'now',
    messages: [request],
    respond: ([result]) => answer(toResult(result, asked.token, logger)),
  };
}

const AMOUNT = amountBetween(0, MAX_AMOUNT_CENTS);

function toResult(result: MessageResult | undefined, paymentId: string, logger: Logger): string {
  if (result?.status === 'decided') {
    return result.declineReason === null ? 'APPROVED' : RESULTS[result.declineReason];
  }
  const code = result?.status === 'undecided' ? result.error.code : null;
  logger.warn({ paymentId, code }, 'declined a request that can not be decided');
  return code === 'card_not_found' ? 'CARD_PAUSED' : 'DECLINED';
}

import { ApiError } from '../../domain/api-error.ts';
import type { DeclineReason } from '../../domain/authorization.ts';
import { amountBetween } from '../../domain/fields.ts';
import { MAX_AMOUNT_CENTS } from '../../domain/money.ts';
import { parseJson } from '../../domain/parse-json.ts';
import { untilAborted } from '../../platform/process/work-context.ts';
import {
  CardNetworkUnavailable,
  type IngressRoute,
  type MessageResult,
  type NetworkResponse,
  type PostForNow,
  type RequestMessage,
} from '../card-network.ts';
import { STANDARD_SIGNATURE_HEADER, verifyStandardWebhook } from '../standard-webhooks.ts';
import { createIncreaseApi, type IncreaseApi, type IncreaseApiOptions } from './increase-api.ts';
import { merchantOf } from './snapshot.ts';
import {
  type CardAuthorizationAsked,
  DECISION_EVENT,
  EVENTS_PATH,
  Event,
  NEEDED_EVENTS,
  RealTimeDecision,
} from './wire.ts';

/** After 2 to 4 s, Increase declines by itself. */
const MAX_DECISION_MS = 2_000;
const DONE: NetworkResponse = { status: 200, body: {} };

const REASONS = {
  card_frozen: 'card_temporarily_disabled',
  card_blocked: 'transaction_never_allowed',
  merchant_category_not_allowed: 'transaction_never_allowed',
  merchant_country_not_allowed: 'transaction_never_allowed',
  spending_limit_exceeded: 'exceeds_approval_limit',
  insufficient_card_balance: 'insufficient_funds',
  authorization_not_pending: 'other',
  declined_by_network: 'other',
  simulated_decline: 'other',
} as const satisfies Record<DeclineReason, string>;

type Action =
  | { decision: 'approve' }
  | { decision: 'decline'; decline: { reason: (typeof REASONS)[DeclineReason] } };
const APPROVE: Action = { decision: 'approve' };
const DECLINE: Action = { decision: 'decline', decline: { reason: 'other' } };

/**
 * What Increase posts: events with only ids in them. A real-time decision is fetched, decided, and answered
 * with a request of ours before the post is answered. What is said about money is read later; the rest
 * does not concern us (docs/issuers.md, "Increase").
 */
export function increaseIngress(options: IncreaseApiOptions): IngressRoute[] {
  const keys = [Buffer.from(options.config.webhookSecret)];
  const api = createIncreaseApi(options);
  return [
    {
      path: EVENTS_PATH,
      signatureHeader: STANDARD_SIGNATURE_HEADER,
      verify: (post) => verifyStandardWebhook(post, keys),
      read: async ({ body }) => {
        const event = Event.safeParse(parseJson(body));
        if (!event.success) {
          const fields = event.error.issues.map((issue) => issue.path.join('.') || 'body');
          throw ApiError.ofFields(fields.map((path) => ({ path, message: `${path}: can not be read` })));
        }
        const { category, associated_object_id: id } = event.data;
        if (category === DECISION_EVENT) return readDecision(api, id);
        if (!NEEDED_EVENTS.includes(category)) return { handling: 'now', messages: [], respond: () => DONE };
        const kind = category.startsWith('card_payment.') ? 'payment' : 'transfer';
        return { handling: 'later', object: { kind, id, networkCardId: null, state: null }, response: DONE };
      },
    },
  ];
}

/** @throws ApiError `unavailable` if Increase gives no answer in time: it declines then by itself */
async function readDecision(api: IncreaseApi, decisionId: string): Promise<PostForNow> {
  const late = AbortSignal.timeout(MAX_DECISION_MS);
  const { status, card_authorization: asked } = await inTime(late, () => getDecision(api, decisionId));
  if (status !== 'pending' || asked === null) return { handling: 'now', messages: [], respond: () => DONE };
  const holdsNothing = asked.direction === 'refund' || asked.processing_category === 'balance_inquiry';
  const request = holdsNothing ? null : toRequest(decisionId, asked);
  return {
    handling: 'now',
    messages: request === null ? [] : [request],
    respond: async ([result]) => {
      const action = holdsNothing ? APPROVE : toAction(result);
      await inTime(late, () => act(api, decisionId, action));
      return DONE;
    },
  };
}

const getDecision = (api: IncreaseApi, id: string): Promise<RealTimeDecision> =>
  api.get(`/real_time_decisions/${encodeURIComponent(id)}`, 'authorization', RealTimeDecision);

/**
 * Approves or declines, and once more if the answer was lost. @throws CardNetworkUnavailable unless Increase
 * has our decision
 */
async function act(api: IncreaseApi, id: string, action: Action): Promise<void> {
  const path = `/real_time_decisions/${encodeURIComponent(id)}/action`;
  const body = { card_authorization: action };
  for (let attempt = 1; ; attempt++) {
    try {
      const answer = await api.act(
        { method: 'POST', path, body, key: null, turn: 'authorization' },
        RealTimeDecision,
      );
      if (!('refused' in answer)) return;
    } catch (error) {
      if (!(error instanceof CardNetworkUnavailable)) throw error;
    }
    // It takes one action only: an earlier one may have reached it.
    const { card_authorization: known, status } = await getDecision(api, id);
    if (status === 'responded' && known?.decision === action.decision) return;
    if (status !== 'pending' || attempt === 2) {
      throw new CardNetworkUnavailable('Increase: a real-time decision did not take our answer');
    }
  }
}

/** Runs requests that count only until then. */
async function inTime<Result>(late: AbortSignal, work: () => Promise<Result>): Promise<Result> {
  try {
    return await untilAborted(late, work);
  } catch (error) {
    if (error instanceof CardNetworkUnavailable) throw new ApiError('unavailable');
    throw error;
  }
}

/** @returns null if we can't decide it, such as one that is not in dollars */
function toRequest(decisionId: string, asked: CardAuthorizationAsked): RequestMessage | null {
  const { settlement_amount: amountCents, settlement_currency: currency } = asked;
  if (currency !== 'USD' || !AMOUNT.safeParse(amountCents).success) return null;
  const increased = asked.request_details.incremental_authorization;
  return {
    type: 'request',
    networkCardId: asked.card_id,
    paymentId: increased?.card_payment_id ?? asked.upcoming_card_payment_id,
    key: decisionId,
    id: decisionId,
    amountCents,
    merchant: merchantOf(asked, asked.merchant_descriptor),
  };
}

const AMOUNT = amountBetween(0, MAX_AMOUNT_CENTS);

function toAction(result: MessageResult | undefined): Action {
  if (result?.status !== 'decided') return DECLINE;
  if (result.declineReason === null) return APPROVE;
  return { decision: 'decline', decline: { reason: REASONS[result.declineReason] } };
}

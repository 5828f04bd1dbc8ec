import { v5, validate } from 'uuid';
import type { z } from 'zod';
import { isId } from '../../domain/ids.ts';
import type { PaymentSnapshot } from '../../domain/payment.ts';
import type { CardNetwork, ListedCard, StatusChangeRequest, UnreadableObject } from '../card-network.ts';
import { checkAge, type KeyOptions } from '../key-lifetime.ts';
import { oldestFirst } from '../oldest-first.ts';
import { orUnreadable } from '../or-unreadable.ts';
import { createLithicApi, type LithicApiOptions, unavailable } from './lithic-api.ts';
import { snapshotTransaction } from './snapshot.ts';
import {
  AUTHORIZATIONS_PATH,
  Card,
  CardDetails,
  CardState,
  EVENTS_PATH,
  EventSubscription,
  Named,
  ResponderEndpoint,
  TRANSACTION_EVENT,
  Transaction,
} from './wire.ts';

interface LithicClientOptions extends LithicApiOptions, KeyOptions {
  /** Whether a change of a card's status is still the one under way. */
  isUnderWay(change: StatusChangeRequest): Promise<boolean>;
}

/** Idempotency-Keys are UUIDs of version 5 in this namespace, of the card's id. It never changes. */
const KEYS = '3f0f6b6e-5d0e-4d0b-9d5a-6a1c5b8f4e27';

const STATES = { active: 'OPEN', frozen: 'PAUSED', blocked: 'CLOSED' } as const;
const OUR_STATUSES = {
  OPEN: 'active',
  PAUSED: 'frozen',
  CLOSED: 'blocked',
  // Of physical cards, which we don't issue.
  PENDING_ACTIVATION: 'frozen',
  PENDING_FULFILLMENT: 'frozen',
} as const;

/** Lithic's client (docs/issuers.md, "Lithic"). `close` closes its connections. */
export function createLithicClient(options: LithicClientOptions): CardNetwork & { close(): Promise<void> } {
  const { config, isUnderWay } = options;
  const api = createLithicApi(options);

  /** The card that was issued for our id. Lithic also finds cards whose memo only contains it. */
  async function findCard(cardId: string): Promise<Card | null> {
    const path = `/v1/cards?memo=${encodeURIComponent(cardId)}`;
    for await (const card of api.list(path, 'operation', Card)) if (card.memo === cardId) return card;
    return null;
  }

  /** What was created in a window of time, whose ends are exclusive at Lithic. */
  async function* listWindow<Body extends { token: string; created: string }>(
    path: string,
    window: { from: Date; before: Date },
    shape: z.ZodType<Body>,
  ): AsyncGenerator<Body> {
    const [fromMs, beforeMs] = [window.from.getTime(), window.before.getTime()];
    const begin = new Date(fromMs - 1).toISOString();
    const end = new Date(beforeMs + 1).toISOString();
    for await (const one of api.list(`${path}?begin=${begin}&end=${end}`, 'reconciliation', shape)) {
      const createdMs = Date.parse(one.created);
      if (('unreadable' in one || createdMs >= fromMs) && createdMs < beforeMs) yield one;
    }
  }

  /** What was created since then, oldest first. */
  const listSince = <Body extends { token: string; created: string }>(
    path: string,
    since: Date,
    shape: z.ZodType<Body>,
  ) =>
    oldestFirst(
      since,
      (from, before) => listWindow(path, { from, before }, shape),
      (listed) => listed.created,
    );

  return {
    abilities: { moneyHeldBy: 'ledger', asksBeforeApproving: true },

    async issueCard({ token, issuerProduct }) {
      const check = async () => checkAge(token, options);
      const body = {
        type: 'VIRTUAL',
        memo: token,
        state: 'OPEN',
        card_program_token: issuerProduct ?? config.cardProgramToken ?? undefined,
      };
      const action = { method: 'POST', path: '/v1/cards', body, key: v5(token, KEYS), check } as const;
      const made = await api.act(action, Card);
      if ('refused' in made) {
        const found = await findCard(token);
        return found === null ? { status: 'declined', reason: made.refused } : toIssued(found);
      }
      if (made.memo !== token) throw unavailable('its card has our key, but is another one than asked for');
      return toIssued(made);
    },

    async lookUpIssuance(token) {
      const found = await findCard(token);
      return found === null ? { status: 'unknown' } : toIssued(found);
    },

    // Our ledger alone has the cards' money.
    transfer: async () => ({ status: 'succeeded' }),
    lookUpTransfer: async () => ({ status: 'succeeded' }),
    trueUp: async () => ({ status: 'succeeded' }),

    /** Lithic knows no tokens of changes, so one that has been overtaken must not be sent. */
    async changeCardStatus(asked) {
      const path = `/v1/cards/${encodeURIComponent(asked.networkCardId)}`;
      const state = STATES[asked.cardStatus];
      const check = async () => {
        if (!(await isUnderWay(asked))) throw unavailable('the change is not under way any more');
      };
      const changed = await api.act({ method: 'PATCH', path, body: { state }, key: null, check }, CardState);
      if ('refused' in changed) {
        const card = await api.get(path, 'operation', CardState);
        if (card.state === state) return { status: 'applied' };
        return { status: 'refused', reason: card.state === 'CLOSED' ? 'card_closed' : changed.refused };
      }
      if (changed.token !== asked.networkCardId || changed.state !== state) {
        throw unavailable('a card did not get the status that was asked for');
      }
      return { status: 'applied' };
    },

    async revealCard({ networkCardId }) {
      const path = `/v1/cards/${encodeURIComponent(networkCardId)}`;
      const card = await api.get(path, 'reveal', CardDetails);
      if (card.token !== networkCardId) throw unavailable('its answer is about another card');
      return {
        pan: card.pan,
        cvv: card.cvv,
        expMonth: Number(card.exp_month),
        expYear: Number(card.exp_year),
      };
    },

    async readPayment(token, turn) {
      const path = `/v1/transactions/${encodeURIComponent(token)}`;
      const transaction = await api.find(path, turn, AnyTransaction);
      return transaction && toSnapshot(transaction);
    },

    snapshotOf(state) {
      // Another release may have stored it, and less of it than this one reads.
      const sent = Transaction.safeParse(JSON.parse(Buffer.from(state).toString()));
      return sent.success ? snapshotTransaction(sent.data) : null;
    },

    // It has no transfers.
    readTransfer: async () => null,

    async *listCards(since) {
      for await (const card of listSince('/v1/cards', since, AnyCard)) yield toListedCard(card);
    },

    async readCard(networkCardId) {
      // Lithic answers 400 to what is no UUID, such as an id that a person has mistyped.
      if (!validate(networkCardId)) return null;
      const path = `/v1/cards/${encodeURIComponent(networkCardId)}`;
      const card = await api.find(path, 'reconciliation', AnyCard);
      return card && toListedCard(card);
    },

    async *listMovements() {},

    async *listPayments(since) {
      for await (const transaction of listSince('/v1/transactions', since, AnyTransaction))
        yield toSnapshot(transaction);
    },

    async checkSetUp() {
      const { enrolled, url } = await api.get(
        '/v1/responder_endpoints?type=AUTH_STREAM_ACCESS',
        'reconciliation',
        ResponderEndpoint,
      );
      const subscribed: string[] = [];
      for await (const one of api.list('/v1/event_subscriptions?', 'reconciliation', EventSubscription)) {
        const isForTransactions = one.event_types == null || one.event_types.includes(TRANSACTION_EVENT);
        if (!one.disabled && isForTransactions && hasPath(one.url, EVENTS_PATH)) subscribed.push(one.url);
      }
      const problems: string[] = [];
      const enrol = `POST /v1/responder_endpoints with the type AUTH_STREAM_ACCESS and our address, which ends in ${AUTHORIZATIONS_PATH}`;
      if (!enrolled) {
        problems.push(`Lithic has no enrolled responder endpoint, so it approves by itself: ${enrol}.`);
      } else if (!hasPath(url ?? '', AUTHORIZATIONS_PATH)) {
        problems.push(`Lithic asks another address than ours whether cards pay: ${enrol}.`);
      }
      if (subscribed.length === 0) {
        problems.push(
          `Lithic has no active event subscription to ${EVENTS_PATH} for ${TRANSACTION_EVENT}, so we are not told what cards did: ` +
            'POST /v1/event_subscriptions with our address.',
        );
      } else if (problems.length === 0 && !subscribed.some((one) => hostOf(one) === hostOf(url ?? ''))) {
        // Which address is ours, only the two together can say.
        problems.push(
          `Lithic asks ${hostOf(url ?? '')} whether cards pay, but sends its events to ${[...new Set(subscribed.map(hostOf))].join(', ')}: ` +
            'make sure that both are our addresses, of one environment.',
        );
      }
      return problems;
    },

    close: () => api.close(),
  };
}

const AnyCard = orUnreadable(CardState, Named);
const AnyTransaction = orUnreadable(Transaction, Named);

function toListedCard(card: z.infer<typeof AnyCard>): ListedCard | UnreadableObject {
  const { token: networkCardId, memo } = card;
  const token = memo != null && isId('card', memo) ? memo : null;
  if ('unreadable' in card) return { networkId: networkCardId, token, unreadable: card.unreadable };
  return { networkCardId, token, status: OUR_STATUSES[card.state] };
}

const toSnapshot = (transaction: z.infer<typeof AnyTransaction>): PaymentSnapshot | UnreadableObject =>
  'unreadable' in transaction
    ? { networkId: transaction.token, token: null, unreadable: transaction.unreadable }
    : snapshotTransaction(transaction);

const hostOf = (url: string): string => (URL.canParse(url) ? new URL(url).host : '');
const hasPath = (url: string, path: string): boolean =>
  URL.canParse(url) && new URL(url).pathname.endsWith(path);

function toIssued({ token, last_four: last4, exp_month: month, exp_year: year }: Card) {
  return {
    status: 'issued' as const,
    networkCardId: token,
    last4,
    expMonth: Number(month),
    expYear: Number(year),
  };
}

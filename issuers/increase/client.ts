import type { z } from 'zod';
import { isId } from '../../domain/ids.ts';
import { readIdTime } from '../../platform/crypto/new-id.ts';
import type {
  CardNetwork,
  IssueCardRequest,
  ListedCard,
  ListedMovement,
  ListedTransaction,
  LookUpAnswer,
  OperationFailed,
  StatusChangeRequest,
  TrueUpAnswer,
  TrueUpAsked,
  TrueUpDirection,
  UnreadableObject,
} from '../card-network.ts';
import { oldestFirst } from '../oldest-first.ts';
import { orUnreadable } from '../or-unreadable.ts';
import {
  createIncreaseApi,
  INVALID_OPERATION,
  type IncreaseApiOptions,
  KEY_USED,
  type Refusal,
  unavailable,
} from './increase-api.ts';
import { pendingTransactionOf, readCardPayment } from './transactions.ts';
import {
  Account,
  AccountTransfer,
  Card,
  CardDetails,
  CardPayment,
  DECISION_EVENT,
  EVENTS_PATH,
  Event,
  EventSubscription,
  Named,
  NamedTransfer,
  NEEDED_EVENTS,
  PendingTransaction,
} from './wire.ts';

interface IncreaseClientOptions extends IncreaseApiOptions {
  /** NETWORK_KEY_LIFETIME */
  keyLifetimeMs: number;
  /** Tells how old a key is. */
  nowMs?: () => number;
  /** Whether a change of a card's status is still the one under way. */
  isUnderWay(change: StatusChangeRequest): Promise<boolean>;
  /**
   * Whether the card with our id was issued by our record, so that nothing may cancel it but a change of its
   * status.
   */
  isInUse(cardId: string): Promise<boolean>;
}

/** A transfer between the funding account and a card's. */
interface Movement {
  key: string;
  /** Our id that the key is derived from. */
  token: string;
  fromAccountId: string;
  toAccountId: string;
  amountCents: number;
}

const CARD_STATUSES = { active: 'active', frozen: 'disabled', blocked: 'canceled' } as const;
const OUR_STATUSES = { active: 'active', disabled: 'frozen', canceled: 'blocked' } as const;

/** Increase's client (docs/issuers.md, "Increase"). `close` closes its connections. */
export function createIncreaseClient(
  options: IncreaseClientOptions,
): CardNetwork & { close(): Promise<void> } {
  const { config, keyLifetimeMs, nowMs = Date.now, isUnderWay, isInUse } = options;
  const { fundingAccountId } = config;
  const api = createIncreaseApi(options);

  /** The object that was made with a key; null if there is none. */
  async function find<Body extends { idempotency_key: string | null }>(
    path: string,
    key: string,
    shape: z.ZodType<Body>,
  ): Promise<Body | null> {
    for await (const found of api.list(
      `${path}?idempotency_key=${encodeURIComponent(key)}`,
      'operation',
      shape,
    )) {
      if (found.idempotency_key !== key)
        throw unavailable('it found an object under another key than asked for');
      return found;
    }
    return null;
  }

  /** Its key is not sent any more. */
  const isTooOld = (token: string) => nowMs() - readIdTime(token).getTime() > keyLifetimeMs;

  /**
   * Makes an object with a key, or finds the one that was made with it. A no counts only if there is none.
   */
  async function create<Body extends { idempotency_key: string | null }>(
    path: string,
    shape: z.ZodType<Body>,
    { key, token, body }: { key: string; token: string; body: object },
  ): Promise<Body | Refusal> {
    const check = async () => {
      if (!isTooOld(token)) return;
      throw unavailable(
        'the operation is older than NETWORK_KEY_LIFETIME, so that its key is not sent again; it is only looked up',
      );
    };
    const answer = await api.act({ method: 'POST', path, body, key, turn: 'operation', check }, shape);
    if (!('refused' in answer)) return answer;
    const found = await find(path, key, shape);
    if (found !== null) return found;
    if (answer.refused === KEY_USED)
      throw unavailable('an idempotency key of ours belongs to another object');
    return answer;
  }

  async function transfer(movement: Movement): Promise<AccountTransfer | Refusal> {
    const { key, token, fromAccountId, toAccountId, amountCents } = movement;
    const made = await create('/account_transfers', AccountTransfer, {
      key,
      token,
      body: {
        account_id: fromAccountId,
        destination_account_id: toAccountId,
        amount: amountCents,
        description: token,
        require_approval: false,
      },
    });
    if ('refused' in made) return made;
    const isAsked =
      made.amount === amountCents &&
      made.account_id === fromAccountId &&
      made.destination_account_id === toAccountId;
    if (!isAsked) throw unavailable(`its transfer ${made.id} has our key, but is another one than asked for`);
    return made;
  }

  const getCard = (networkCardId: string) =>
    api.get(`/cards/${encodeURIComponent(networkCardId)}`, 'operation', Card);

  /**
   * Makes the account, then the card, then the transfer, each with a key of its own, because a key at
   * Increase is one object. The money comes last, so a no moves none.
   */
  async function issueCard(asked: IssueCardRequest): Promise<Exclude<LookUpAnswer, { status: 'unknown' }>> {
    const { token, amountCents, issuerProduct } = asked;
    const account = await create('/accounts', Account, {
      key: `${token}/account`,
      token,
      body: {
        name: token,
        program_id: issuerProduct ?? config.programId ?? undefined,
        entity_id: config.entityId ?? undefined,
      },
    });
    if ('refused' in account) return { status: 'declined', reason: account.refused };
    const card = await create('/cards', Card, {
      key: `${token}/card`,
      token,
      body: { account_id: account.id, description: token },
    });
    if ('refused' in card) return { status: 'declined', reason: card.refused };
    // An earlier run was refused the transfer, and its answer may have got lost. Asked again now, the
    // transfer could succeed.
    if (card.status === 'canceled') return readCanceled(token, card, 'card_canceled');
    const movement = {
      key: `${token}/transfer`,
      token,
      fromAccountId: fundingAccountId,
      toAccountId: account.id,
      amountCents,
    };
    const made = await transfer(movement);
    if (!('refused' in made) && made.status !== 'canceled') return readIssuance(card, made);
    await setStatus(card.id, 'canceled', async () => {
      const known = await find('/account_transfers', movement.key, AccountTransfer);
      if (known !== null && known.status !== 'canceled') throw unavailable('the transfer was made after all');
    });
    // Another process may have got the transfer meanwhile.
    return readCanceled(token, card, 'refused' in made ? made.refused : 'transfer_canceled');
  }

  /** A card that was canceled before its transfer: that is a no, unless there is a transfer all the same. */
  async function readCanceled(token: string, card: Card, reason: string) {
    const made = await find('/account_transfers', `${token}/transfer`, AccountTransfer);
    return made === null ? { status: 'declined' as const, reason } : readIssuance(card, made);
  }

  /** Its money, to the card's account or back. */
  async function move(
    { token, networkCardId, amountCents }: { token: string; networkCardId: string; amountCents: number },
    direction: TrueUpDirection,
  ) {
    const { account_id: cardAccountId } = await getCard(networkCardId);
    const isToCard = direction === 'to_card';
    const made = await transfer({
      key: token,
      token,
      fromAccountId: isToCard ? fundingAccountId : cardAccountId,
      toAccountId: isToCard ? cardAccountId : fundingAccountId,
      amountCents,
    });
    return 'refused' in made ? { status: 'declined' as const, reason: made.refused } : readTransfer(made);
  }

  /**
   * Moves what belongs on the other side. An error makes no object, so a lack of money, such as of what
   * Increase still holds, is final only once the key is too old.
   */
  async function trueUp(asked: TrueUpAsked): Promise<TrueUpAnswer> {
    const answer = isTooOld(asked.token) ? await lookUp(asked.token) : await move(asked, asked.direction);
    if (answer.status === 'unknown') return { status: 'refused', reason: 'key_expired' };
    if (answer.status === 'declined' && answer.reason === INVALID_OPERATION)
      return { status: 'not_yet', reason: answer.reason };
    return 'reason' in answer ? { status: 'refused', reason: answer.reason } : answer;
  }

  async function lookUp(token: string) {
    const made = await find('/account_transfers', token, AccountTransfer);
    return made === null ? { status: 'unknown' as const } : readTransfer(made);
  }

  async function setStatus(
    networkCardId: string,
    status: Card['status'],
    check: () => Promise<void>,
  ): Promise<Card | Refusal> {
    const path = `/cards/${encodeURIComponent(networkCardId)}`;
    const action = { method: 'PATCH', path, body: { status }, key: null, turn: 'operation', check } as const;
    const answer = await api.act(action, Card);
    if (!('refused' in answer)) {
      if (answer.status !== status) throw unavailable('a card did not get the status that was asked for');
      return answer;
    }
    const card = await getCard(networkCardId);
    return card.status === status ? card : answer;
  }

  async function readPayment(payment: CardPayment) {
    const pending = pendingTransactionOf(payment);
    const status =
      pending === null
        ? null
        : (await api.get(`/pending_transactions/${encodeURIComponent(pending)}`, 'event', PendingTransaction))
            .status;
    return readCardPayment(payment, status !== 'pending');
  }

  /** What was created since then, oldest first. */
  const listSince = <Body extends { created_at: string }>(
    path: string,
    since: Date,
    shape: z.ZodType<Body>,
  ) =>
    oldestFirst(
      since,
      (from, before) => {
        const window = `created_at.on_or_after=${from.toISOString()}&created_at.before=${before.toISOString()}`;
        return api.list(`${path}?${window}`, 'reconciliation', shape);
      },
      (listed) => listed.created_at,
    );

  async function isCardsAccount(accountId: string): Promise<boolean> {
    const path = `/cards?account_id=${encodeURIComponent(accountId)}&limit=1`;
    for await (const _ of api.list(path, 'reconciliation', CardName)) return true;
    return false;
  }

  return {
    abilities: { moneyHeldBy: 'network', asksBeforeApproving: config.asksForDecisions },

    issueCard,
    /**
     * An account or a card without its transfer is nothing yet, unless the card was canceled because of it. A
     * canceled transfer is a no, which cancels the card first.
     */
    async lookUpIssuance(token) {
      const card = await find('/cards', `${token}/card`, Card);
      if (card === null) return { status: 'unknown' };
      if (card.status === 'canceled') return readCanceled(token, card, 'card_canceled');
      const made = await find('/account_transfers', `${token}/transfer`, AccountTransfer);
      if (made === null) return { status: 'unknown' };
      if (made.status === 'canceled' && !(await isInUse(token)))
        await setStatus(card.id, 'canceled', async () => {});
      return readIssuance(card, made);
    },

    transfer: (asked) => move(asked, asked.direction === 'topup' ? 'to_card' : 'from_card'),
    lookUpTransfer: ({ token }) => lookUp(token),
    trueUp,

    /** Increase takes no key here, so a change that has been overtaken must not be sent. */
    async changeCardStatus(asked) {
      const answer = await setStatus(asked.networkCardId, CARD_STATUSES[asked.cardStatus], async () => {
        if (!(await isUnderWay(asked))) throw unavailable('the change is not under way any more');
      });
      return 'refused' in answer ? { status: 'refused', reason: answer.refused } : { status: 'applied' };
    },

    async revealCard({ networkCardId }) {
      const path = `/cards/${encodeURIComponent(networkCardId)}/details`;
      const details = await api.get(path, 'reveal', CardDetails);
      if (details.card_id !== networkCardId)
        throw unavailable('it answered with the details of another card');
      return {
        pan: details.primary_account_number,
        cvv: details.verification_code,
        expMonth: details.expiration_month,
        expYear: details.expiration_year,
      };
    },

    async readEvent(body) {
      const event = Event.parse(JSON.parse(Buffer.from(body).toString()));
      const id = encodeURIComponent(event.associated_object_id);
      switch (event.category) {
        case 'card_payment.created':
        case 'card_payment.updated':
          return readPayment(await api.get(`/card_payments/${id}`, 'event', CardPayment));
        case 'account_transfer.created':
        case 'account_transfer.updated': {
          const made = await api.get(`/account_transfers/${id}`, 'event', AccountTransfer);
          const { kind, token } = readKey(made.idempotency_key);
          if (token === null || kind === 'true_up') return [];
          return [{ type: 'outcome', subject: kind === 'issuance' ? 'card' : kind, token }];
        }
        default:
          return [];
      }
    },

    async *listCards(since) {
      for await (const card of listSince('/cards', since, AnyCard)) yield toListedCard(card);
    },

    async readCard(networkCardId) {
      const card = await api.find(`/cards/${encodeURIComponent(networkCardId)}`, 'reconciliation', AnyCard);
      return card && toListedCard(card);
    },

    async *listMovements(since) {
      const isCards = new Map<string, boolean>();
      for await (const made of listSince('/account_transfers', since, AnyTransfer)) {
        const isToCard = made.account_id === fundingAccountId;
        const isForeign = made.account_id !== null && made.destination_account_id !== null && !isToCard;
        if (isForeign && made.destination_account_id !== fundingAccountId) continue;
        const { kind, token } = readKey(made.idempotency_key);
        if ('unreadable' in made) {
          yield { networkId: made.id, token, unreadable: made.unreadable } satisfies UnreadableObject;
          continue;
        }
        const otherAccountId = isToCard ? made.destination_account_id : made.account_id;
        if (token === null) {
          let isCard = isCards.get(otherAccountId);
          if (isCard === undefined) {
            isCard = await isCardsAccount(otherAccountId);
            if (isCards.size >= MAX_REMEMBERED_ACCOUNTS) isCards.clear();
            isCards.set(otherAccountId, isCard);
          }
          if (!isCard) continue;
        }
        yield {
          networkMovementId: made.id,
          kind: token === null ? (isToCard ? 'topup' : 'withdrawal') : kind,
          token,
          amountCents: made.amount,
          status: MOVEMENT_STATUSES[made.status],
        } satisfies ListedMovement;
      }
    },

    async *listTransactions(since) {
      for await (const payment of listSince('/card_payments', since, AnyPayment)) {
        if ('unreadable' in payment) yield toUnreadable(payment);
        else yield* toListedTransactions(payment);
      }
    },

    async readPayment(networkPaymentId) {
      const path = `/card_payments/${encodeURIComponent(networkPaymentId)}`;
      const payment = await api.find(path, 'reconciliation', AnyPayment);
      if (payment === null) return null;
      return 'unreadable' in payment ? toUnreadable(payment) : toListedTransactions(payment);
    },

    async checkSetUp() {
      const problems: string[] = [];
      const path = `/accounts/${encodeURIComponent(fundingAccountId)}`;
      const account = await api.get(path, 'reconciliation', Account);
      if (account.closed_at !== null)
        problems.push('The account INCREASE_FUNDING_ACCOUNT_ID is closed at Increase.');
      const subscribed = new Set<string | null>();
      let isToAll = false;
      let isAsked = false;
      for await (const one of api.list('/event_subscriptions', 'reconciliation', EventSubscription)) {
        if (one.status !== 'active' || !one.url.endsWith(EVENTS_PATH)) continue;
        if (one.selected_event_categories === null) isToAll = true;
        const categories = one.selected_event_categories?.map(({ event_category: it }) => it) ?? [];
        for (const category of categories) subscribed.add(category);
        if (categories.length === 1 && categories[0] === DECISION_EVENT) isAsked = true;
      }
      const missing = NEEDED_EVENTS.filter((category) => !isToAll && !subscribed.has(category));
      if (missing.length > 0) {
        problems.push(
          `Increase has no active event subscription to ${EVENTS_PATH} for ${missing.join(', ')}, so we are not told about them.`,
        );
      }
      if (config.asksForDecisions && !isAsked) {
        problems.push(
          `Increase has no active event subscription to ${EVENTS_PATH} for ${DECISION_EVENT} alone, so it approves authorizations without asking us.`,
        );
      }
      return problems;
    },

    close: () => api.close(),
  };
}

/** Accounts that are no card's, remembered so that each takes one request. */
const MAX_REMEMBERED_ACCOUNTS = 10_000;

const CardName = Named.pick({ id: true });
const AnyCard = orUnreadable(Card, Named);
const AnyTransfer = orUnreadable(AccountTransfer, NamedTransfer);
const AnyPayment = orUnreadable(CardPayment, Named);

function toListedCard(card: z.infer<typeof AnyCard>): ListedCard | UnreadableObject {
  const [id = '', step] = card.idempotency_key?.split('/') ?? [];
  const token = step === 'card' && isId('card', id) ? id : null;
  if ('unreadable' in card) return { networkId: card.id, token, unreadable: card.unreadable };
  return { networkCardId: card.id, token, status: OUR_STATUSES[card.status] };
}

const toUnreadable = ({ id, unreadable }: { id: string; unreadable: string[] }): UnreadableObject => ({
  networkId: id,
  token: null,
  unreadable,
});

/** Whether a clearing was the final one takes a request, which is sent only if it has to be booked. */
function toListedTransactions(payment: CardPayment): ListedTransaction[] {
  const event = {
    id: payment.id,
    category: 'card_payment.updated',
    associated_object_id: payment.id,
    associated_object_type: 'card_payment',
  } satisfies Event;
  const toRead = Buffer.from(JSON.stringify(event));
  return readCardPayment(payment, false).map((told) => ({ ...told, toRead }));
}

const MOVEMENT_STATUSES = {
  complete: 'succeeded',
  pending_approval: 'accepted',
  canceled: 'failed',
} as const;

function readTransfer({
  status,
}: AccountTransfer): { status: 'succeeded' } | { status: 'accepted' } | OperationFailed {
  if (status === 'canceled') return { status: 'failed', reason: 'transfer_canceled' };
  return status === 'complete' ? { status: 'succeeded' } : { status: 'accepted' };
}

function readIssuance(card: Card, { status }: AccountTransfer): Exclude<LookUpAnswer, { status: 'unknown' }> {
  if (status === 'canceled') return { status: 'failed', reason: 'transfer_canceled' };
  const issued = {
    networkCardId: card.id,
    last4: card.last4,
    expMonth: card.expiration_month,
    expYear: card.expiration_year,
  };
  return status === 'complete' ? { status: 'issued', ...issued } : { status: 'accepted', card: issued };
}

/** What a transfer was for, by its key. @returns a null token if the key is not ours */
function readKey(key: string | null): { kind: ListedMovement['kind']; token: string | null } {
  const [id = '', step] = key?.split('/') ?? [];
  if (isId('card', id) && step === 'transfer') return { kind: 'issuance', token: id };
  if (isId('topup', id)) return { kind: 'topup', token: id };
  if (isId('wdr', id)) return { kind: 'withdrawal', token: id };
  return { kind: 'true_up', token: isId('tru', id) ? id : null };
}

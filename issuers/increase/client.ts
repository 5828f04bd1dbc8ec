import type { IncreaseConfig } from '../../platform/config/card-networks.ts';
import type { CardNetwork, NetworkMessage } from '../card-network.ts';
import { type CardOptions, increaseCards } from './cards.ts';
import { createIncreaseApi, type IncreaseApi, type IncreaseApiOptions } from './increase-api.ts';
import { createKeyedObjects, type KeyOptions, readKey } from './keyed-objects.ts';
import { increaseLists } from './lists.ts';
import { pendingTransactionOf, readCardPayment } from './transactions.ts';
import { increaseTransfers } from './transfers.ts';
import {
  Account,
  AccountTransfer,
  CardPayment,
  DECISION_EVENT,
  EVENTS_PATH,
  Event,
  EventSubscription,
  NEEDED_EVENTS,
  PendingTransaction,
} from './wire.ts';

/** Increase's client (docs/issuers.md, "Increase"). `close` closes its connections. */
export function createIncreaseClient(
  options: IncreaseApiOptions & KeyOptions & CardOptions,
): CardNetwork & { close(): Promise<void> } {
  const { config } = options;
  const { fundingAccountId } = config;
  const api = createIncreaseApi(options);
  const keyed = createKeyedObjects(api, options);
  return {
    abilities: { moneyHeldBy: 'network', asksBeforeApproving: config.asksForDecisions },
    ...increaseCards(api, keyed, options),
    ...increaseTransfers(api, keyed, fundingAccountId),
    readEvent: (body) => readEvent(api, body),
    ...increaseLists(api, fundingAccountId),
    checkSetUp: () => checkSetUp(api, config),
    close: () => api.close(),
  };
}

/** What a kept event says. */
async function readEvent(api: IncreaseApi, body: Uint8Array): Promise<NetworkMessage[]> {
  const event = Event.parse(JSON.parse(Buffer.from(body).toString()));
  const id = encodeURIComponent(event.associated_object_id);
  switch (event.category) {
    case 'card_payment.created':
    case 'card_payment.updated':
      return readPayment(api, await api.get(`/card_payments/${id}`, 'event', CardPayment));
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
}

async function readPayment(api: IncreaseApi, payment: CardPayment) {
  const pending = pendingTransactionOf(payment);
  const status =
    pending === null
      ? null
      : (await api.get(`/pending_transactions/${encodeURIComponent(pending)}`, 'event', PendingTransaction))
          .status;
  return readCardPayment(payment, status !== 'pending');
}

async function checkSetUp(api: IncreaseApi, { fundingAccountId, asksForDecisions }: IncreaseConfig) {
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
  if (asksForDecisions && !isAsked) {
    problems.push(
      `Increase has no active event subscription to ${EVENTS_PATH} for ${DECISION_EVENT} alone, so it approves authorizations without asking us.`,
    );
  }
  return problems;
}

import type { IncreaseConfig } from '../../platform/config/card-networks.ts';
import type { CardNetwork, OutcomeMessage } from '../card-network.ts';
import type { KeyOptions } from '../key-lifetime.ts';
import { type CardOptions, increaseCards } from './cards.ts';
import { createIncreaseApi, type IncreaseApi, type IncreaseApiOptions } from './increase-api.ts';
import { createKeyedObjects, readKey } from './keyed-objects.ts';
import { increaseLists } from './lists.ts';
import { readPayment } from './read-payment.ts';
import { increaseTransfers } from './transfers.ts';
import {
  Account,
  AccountTransfer,
  DECISION_EVENT,
  EVENTS_PATH,
  EventSubscription,
  NEEDED_EVENTS,
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
    readPayment: (paymentId, turn) => readPayment(api, paymentId, turn),
    // Its events have only ids.
    snapshotOf: () => null,
    readTransfer: (transferId) => readTransfer(api, transferId),
    ...increaseLists(api, fundingAccountId),
    checkSetUp: () => checkSetUp(api, config),
    close: () => api.close(),
  };
}

/** What a transfer was for, by its key. */
async function readTransfer(api: IncreaseApi, transferId: string): Promise<OutcomeMessage | null> {
  const path = `/account_transfers/${encodeURIComponent(transferId)}`;
  const { kind, token } = readKey((await api.get(path, 'event', AccountTransfer)).idempotency_key);
  if (token === null || kind === 'true_up') return null;
  return { type: 'outcome', subject: kind === 'issuance' ? 'card' : kind, token };
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

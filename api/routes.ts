import { createDeposit, type DepositDependencies, getDeposit, listDeposits } from './deposits.ts';
import type { Route } from './http/route.ts';
import type { IssuingDependencies } from './issue-card.ts';
import type { RevealDependencies } from './reveal-card.ts';
import { getBalance } from './routes/balance.ts';
import { listBalanceTransactions } from './routes/balance-transactions.ts';
import { blockCard, freezeCard, unfreezeCard } from './routes/card-status.ts';
import { listCardTransactions } from './routes/card-transactions.ts';
import { createCard, getCard, listCards } from './routes/cards.ts';
import { getEvent, listEvents, resendEvent } from './routes/events.ts';
import { ping } from './routes/ping.ts';
import { listProducts } from './routes/products.ts';
import { createQuote } from './routes/quotes.ts';
import { getSecureDetails } from './routes/secure-details.ts';
import { type SimulationDependencies, simulateCardTransaction } from './routes/simulate-transaction.ts';
import { creditTestBalance } from './routes/test-credit.ts';
import { createTopUp, getTopUp, listTopUps } from './routes/topups.ts';
import {
  deleteWebhookEndpoint,
  getWebhookEndpoint,
  putWebhookEndpoint,
  rotateWebhookSecret,
  testWebhookEndpoint,
} from './routes/webhook-endpoint.ts';
import type { TopUpDependencies } from './top-up-card.ts';
import type { WebhookDependencies } from './webhook-dependencies.ts';

export interface RouteDependencies
  extends IssuingDependencies,
    TopUpDependencies,
    RevealDependencies,
    SimulationDependencies,
    DepositDependencies,
    WebhookDependencies {}

/** Every route of /v1, in the order of the reference. */
export function createRoutes(dependencies: RouteDependencies): Route[] {
  return [
    ping(),
    getBalance(dependencies),
    listBalanceTransactions(dependencies),
    listProducts(dependencies),
    createDeposit(dependencies),
    listDeposits(dependencies),
    getDeposit(dependencies),
    createQuote(dependencies),
    createCard(dependencies),
    listCards(dependencies),
    getCard(dependencies),
    getSecureDetails(dependencies),
    createTopUp(dependencies),
    listTopUps(dependencies),
    getTopUp(dependencies),
    freezeCard(dependencies),
    unfreezeCard(dependencies),
    blockCard(dependencies),
    listCardTransactions(dependencies),
    getWebhookEndpoint(dependencies),
    putWebhookEndpoint(dependencies),
    deleteWebhookEndpoint(dependencies),
    rotateWebhookSecret(dependencies),
    testWebhookEndpoint(dependencies),
    listEvents(dependencies),
    getEvent(dependencies),
    resendEvent(dependencies),
    creditTestBalance(dependencies),
    simulateCardTransaction(dependencies),
  ] as Route[];
}

/** The declarations alone: nothing of them is read before a request comes. */
export function documentedRoutes(): Route[] {
  return createRoutes(new Proxy({} as RouteDependencies, { get: () => undefined }));
}

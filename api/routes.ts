import type { TestIssuanceContext } from '../commands/funding/test-mode.ts';
import type { ReadList } from '../db/read-replica.ts';
import { account } from './account.ts';
import { balance } from './balance.ts';
import { cardStatus } from './card-status.ts';
import { cards } from './cards.ts';
import { type DepositDependencies, deposits } from './deposits.ts';
import { events } from './events.ts';
import type { FundingDependencies } from './fund-card.ts';
import type { Declaration, Route } from './http/route.ts';
import { products } from './products.ts';
import { quotes } from './quotes.ts';
import { type RevealDependencies, secureDetails } from './secure-details.ts';
import { type SimulationDependencies, testMode } from './test-mode.ts';
import { topups } from './topups.ts';
import { transactions } from './transactions.ts';
import { type WebhookDependencies, webhooks } from './webhooks.ts';

export interface RouteDependencies
  extends FundingDependencies,
    TestIssuanceContext,
    RevealDependencies,
    SimulationDependencies,
    DepositDependencies,
    WebhookDependencies {
  readList: ReadList;
}

/** Everything under /v1, in the order it appears in the reference. */
const RESOURCES = [
  ...[account, balance, products, deposits, quotes],
  ...[cards, secureDetails, topups, cardStatus, transactions],
  ...[webhooks, events, testMode],
];

export const DECLARATIONS: readonly Declaration[] = RESOURCES.flatMap(({ declarations }) => declarations);

export const createRoutes = (dependencies: RouteDependencies): Route[] =>
  RESOURCES.flatMap(({ routes }) => routes(dependencies));

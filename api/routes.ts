import { account } from './account.ts';
import { apiKeys } from './api-keys.ts';
import { authorizations } from './authorizations.ts';
import { balance } from './balance.ts';
import { balanceAlert } from './balance-alert.ts';
import { cardStatus } from './card-status.ts';
import { type CardDependencies, cards } from './cards.ts';
import { type DepositDependencies, deposits } from './deposits.ts';
import { events } from './events.ts';
import type { Declaration, Route } from './http/route.ts';
import { operations } from './operations.ts';
import { products } from './products.ts';
import { quotes } from './quotes.ts';
import { type ReportDependencies, reports } from './reports.ts';
import { type RevealDependencies, secureDetails } from './secure-details.ts';
import { spendingLimits } from './spending-limits.ts';
import { statements } from './statements.ts';
import { type TestAuthorizationDependencies, testAuthorizations } from './test-authorizations.ts';
import { type TestClockDependencies, testClock } from './test-clock.ts';
import { type TestDepositDependencies, testDeposits } from './test-deposits.ts';
import { type SimulationDependencies, testMode } from './test-mode.ts';
import { type TopUpDependencies, topups } from './topups.ts';
import { transactions } from './transactions.ts';
import { type WebhookEndpointDependencies, webhookEndpoints } from './webhook-endpoints.ts';
import { webhookReplays } from './webhook-replays.ts';
import { type WebhookDependencies, webhooks } from './webhooks.ts';
import { type WithdrawalDependencies, withdrawals } from './withdrawals.ts';

export interface RouteDependencies
  extends CardDependencies,
    TopUpDependencies,
    WithdrawalDependencies,
    SimulationDependencies,
    TestAuthorizationDependencies,
    TestClockDependencies,
    TestDepositDependencies,
    DepositDependencies,
    WebhookDependencies,
    WebhookEndpointDependencies,
    ReportDependencies {}

const UP_TO_CARDS = [account, balance, balanceAlert, products, deposits, quotes, cards];
const FROM_TOPUPS = [
  topups,
  withdrawals,
  cardStatus,
  transactions,
  authorizations,
  spendingLimits,
  reports,
  statements,
  operations,
  apiKeys,
  webhooks,
  webhookEndpoints,
  webhookReplays,
  events,
  testMode,
  testAuthorizations,
  testDeposits,
  testClock,
];

/** Everything under /v1, in the order it appears in the reference. */
export const DECLARATIONS: readonly Declaration[] = [...UP_TO_CARDS, secureDetails, ...FROM_TOPUPS].flatMap(
  ({ declarations }) => declarations,
);

/** The routes of the part `partner`: all but the reveals. */
export const partnerRoutes = (dependencies: RouteDependencies): Route[] =>
  [...UP_TO_CARDS, ...FROM_TOPUPS].flatMap(({ routes }) => routes(dependencies));

/** The routes of the part `reveal`. */
export const revealRoutes = (dependencies: RevealDependencies): Route[] => secureDetails.routes(dependencies);

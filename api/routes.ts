import { apiKeys } from '../accounts/api-keys-routes.ts';
import { account, balance, balanceAlert, quotes } from '../accounts/routes.ts';
import {
  type WorkbenchSessionDependencies,
  workbenchSessions,
} from '../accounts/workbench-sessions-routes.ts';
import { products } from '../cards/products-routes.ts';
import { type RevealLinkDependencies, revealLinks } from '../cards/reveal-links-routes.ts';
import { type CardDependencies, cards } from '../cards/routes.ts';
import { secureDetails } from '../cards/secure-details-routes.ts';
import { cardStatus } from '../cards/status-routes.ts';
import { type TransferDependencies, topups, withdrawals } from '../cards/transfers/routes.ts';
import {
  type DepositDependencies,
  deposits,
  type TestDepositDependencies,
  testDeposits,
} from '../deposits/routes.ts';
import { overview } from '../exports/overview-routes.ts';
import { type ReportDependencies, reports } from '../exports/reports-routes.ts';
import { statements, type TestClockDependencies, testClock } from '../exports/routes.ts';
import { authorizations } from '../payments/authorizations-routes.ts';
import { spendingLimits } from '../payments/spending-limits-routes.ts';
import {
  type TestAuthorizationDependencies,
  testAuthorizations,
} from '../payments/test-authorizations-routes.ts';
import { type SimulationDependencies, testMode } from '../payments/test-mode-routes.ts';
import { transactions } from '../payments/transactions-routes.ts';
import { loggedRequests } from '../requests/logged-requests-routes.ts';
import { operations } from '../requests/routes.ts';
import { type WebhookDependencies, webhookEndpoints } from '../webhooks/endpoints-routes.ts';
import { events } from '../webhooks/events-routes.ts';
import { webhookReplays } from '../webhooks/replays/routes.ts';
import { webhooks } from '../webhooks/routes.ts';
import type { Declaration, Route } from './http/route.ts';

export interface RouteDependencies
  extends CardDependencies,
    TransferDependencies,
    SimulationDependencies,
    TestAuthorizationDependencies,
    TestClockDependencies,
    TestDepositDependencies,
    DepositDependencies,
    WebhookDependencies,
    ReportDependencies,
    WorkbenchSessionDependencies {}

const UP_TO_CARDS = [account, overview, balance, balanceAlert, products, deposits, quotes, cards];
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
  loggedRequests,
  apiKeys,
  workbenchSessions,
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
export const DECLARATIONS: readonly Declaration[] = [
  ...UP_TO_CARDS,
  secureDetails,
  revealLinks,
  ...FROM_TOPUPS,
].flatMap(({ declarations }) => declarations);

/** The routes of the part `partner`: all but the reveals. */
export const partnerRoutes = (dependencies: RouteDependencies): Route[] =>
  [...UP_TO_CARDS, ...FROM_TOPUPS].flatMap(({ routes }) => routes(dependencies));

/** The routes of the part `reveal`. */
export const revealRoutes = (dependencies: RevealLinkDependencies): Route[] => [
  ...secureDetails.routes(dependencies),
  ...revealLinks.routes(dependencies),
];

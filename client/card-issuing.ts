import { HttpClient } from './http.ts';
import * as resources from './resources.ts';
import { webhooks } from './webhooks.ts';

export interface CardIssuingOptions {
  /** `sk_test_…` or `sk_live_…`. It determines the mode. */
  apiKey: string;
  /** The service's address with its version, such as `https://api.example.com/v1`. */
  baseUrl: string;
  /** How often to retry a failed attempt. Default: 3. */
  maxRetries?: number;
  /** How long one attempt may take. Default: 30 seconds. The API can take 16 seconds to respond to a live `cards.create`. */
  timeoutMs?: number;
}

/** The Virtual Card Issuing Partner API. One instance serves a whole process. */
export class CardIssuing {
  /** The mode of the key. */
  readonly mode: 'test' | 'live';
  readonly account: resources.Account;
  readonly balance: resources.Balance;
  readonly balanceTransactions: resources.BalanceTransactions;
  readonly products: resources.Products;
  readonly quotes: resources.Quotes;
  readonly cards: resources.Cards;
  readonly topups: resources.Topups;
  readonly withdrawals: resources.Withdrawals;
  readonly transactions: resources.Transactions;
  readonly authorizations: resources.Authorizations;
  readonly spendingLimits: resources.SpendingLimits;
  readonly operations: resources.Operations;
  readonly deposits: resources.Deposits;
  readonly reports: resources.Reports;
  readonly statements: resources.Statements;
  readonly apiKeys: resources.ApiKeys;
  readonly webhookEndpoint: resources.WebhookEndpoint;
  readonly webhookEndpoints: resources.WebhookEndpoints;
  readonly events: resources.Events;
  readonly testHelpers: resources.TestHelpers;
  readonly webhooks: typeof webhooks = webhooks;

  /** @throws {TypeError} `apiKey` or `baseUrl` is malformed */
  constructor({ apiKey, baseUrl, maxRetries = 3, timeoutMs = 30_000 }: CardIssuingOptions) {
    const [, mode] = /^sk_(test|live)_[!-~]+$/.exec(apiKey) ?? [];
    if (mode === undefined) throw new TypeError('apiKey must begin with sk_test_ or sk_live_');
    const address = baseUrl.replace(/\/+$/, '');
    if (!URL.canParse(address) || !address.endsWith('/v1'))
      throw new TypeError('baseUrl must be a URL that ends with /v1');
    const http = new HttpClient({ apiKey, baseUrl: address, maxRetries, timeoutMs });
    this.mode = mode as 'test' | 'live';
    this.account = new resources.Account(http);
    this.balance = new resources.Balance(http);
    this.balanceTransactions = new resources.BalanceTransactions(http);
    this.products = new resources.Products(http);
    this.quotes = new resources.Quotes(http);
    this.cards = new resources.Cards(http);
    this.topups = new resources.Topups(http);
    this.withdrawals = new resources.Withdrawals(http);
    this.transactions = new resources.Transactions(http);
    this.authorizations = new resources.Authorizations(http);
    this.spendingLimits = new resources.SpendingLimits(http);
    this.operations = new resources.Operations(http);
    this.deposits = new resources.Deposits(http);
    this.reports = new resources.Reports(http);
    this.statements = new resources.Statements(http);
    this.apiKeys = new resources.ApiKeys(http);
    this.webhookEndpoint = new resources.WebhookEndpoint(http);
    this.webhookEndpoints = new resources.WebhookEndpoints(http);
    this.events = new resources.Events(http);
    this.testHelpers = new resources.TestHelpers(http);
  }
}

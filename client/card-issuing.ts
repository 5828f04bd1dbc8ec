import { HttpClient } from './http.ts';
import * as resources from './resources.ts';
import { webhooks } from './webhooks.ts';

export interface CardIssuingOptions {
  /** `sk_test_…` or `sk_live_…`. It determines the mode. White space at its end, as in a file, is ignored. */
  apiKey: string;
  /** The service's address with its version, such as `https://api.example.com/v1`. Only a service on this machine may have http. */
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
    const key = String(apiKey).trimEnd();
    const [, mode] = /^sk_(test|live)_[!-~]+$/.exec(key) ?? [];
    if (mode === undefined) throw new TypeError('apiKey must begin with sk_test_ or sk_live_');
    const http = new HttpClient({ apiKey: key, baseUrl: checkBaseUrl(baseUrl), maxRetries, timeoutMs });
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

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** @returns it without a slash at its end @throws {TypeError} it is no place for an API key */
function checkBaseUrl(baseUrl: string | undefined): string {
  if (!baseUrl)
    throw new TypeError("baseUrl is missing: it is the API's address, such as https://api.example.com/v1");
  const address = baseUrl.replace(/\/+$/, '');
  if (!URL.canParse(address) || !address.endsWith('/v1'))
    throw new TypeError('baseUrl must be a URL that ends with /v1');
  const { protocol, hostname, username, password, search, hash } = new URL(address);
  if (username !== '' || password !== '')
    throw new TypeError(
      'baseUrl must not have a user name or a password: the API key is all that the API takes',
    );
  if (search !== '' || hash !== '') throw new TypeError('baseUrl must be a URL that ends with /v1');
  if (protocol !== 'https:' && !(protocol === 'http:' && LOOPBACK.test(hostname)))
    throw new TypeError(
      'baseUrl must begin with https://, or anybody on the way could read your API key. http:// is for a service on this machine: localhost, 127.0.0.1 or [::1]',
    );
  return address;
}

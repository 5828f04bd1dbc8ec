import type * as api from './generated/types.gen.ts';
import type {
  Answer,
  HttpClient,
  IdempotentRequestOptions,
  Operation,
  OperationData,
  RequestOptions,
} from './http.ts';
import { List, type Page } from './list.ts';
import { type WaitOptions, waitUntilSettled } from './settled.ts';

type QueryOf<D extends OperationData> = NonNullable<D['query']>;

/**
 * Classes and methods are named after the OpenAPI document's operations: `cards.create` is `create` of `Cards`. Paths, bodies
 * and results are checked against the generated types.
 */
abstract class Resource {
  readonly #http: HttpClient;

  constructor(http: HttpClient) {
    this.#http = http;
  }

  protected send<D extends OperationData, R>(
    operation: Operation<D>,
    options?: IdempotentRequestOptions,
  ): Promise<Answer<R>> {
    return this.#http.send<D, R>(operation, options);
  }

  protected pages<D extends OperationData, R extends Page<unknown>>(
    operation: Omit<Operation<D>, 'method'>,
    options?: RequestOptions,
  ): List<R['data'][number]> {
    const { url, path, query } = operation as OperationData;
    return new List<R['data'][number]>((cursor) =>
      this.#http.send<OperationData, R>(
        {
          method: 'GET',
          url,
          ...(path && { path }),
          query: { ...query, ...(cursor !== undefined && { starting_after: cursor }) },
        },
        options,
      ),
    );
  }
}

export class Account extends Resource {
  /** Tells you which account and mode the key belongs to. */
  ping(options?: RequestOptions): Promise<Answer<api.Ping>> {
    return this.send<api.AccountPingData, api.AccountPingResponse>({ method: 'GET', url: '/ping' }, options);
  }
}

export class Balance extends Resource {
  get(options?: RequestOptions): Promise<Answer<api.Balance>> {
    return this.send<api.BalanceGetData, api.BalanceGetResponse>({ method: 'GET', url: '/balance' }, options);
  }
}

export class BalanceTransactions extends Resource {
  /** Every change to your balance, newest first. */
  list(
    query: QueryOf<api.BalanceTransactionsListData> = {},
    options?: RequestOptions,
  ): List<api.BalanceTransaction> {
    return this.pages<api.BalanceTransactionsListData, api.BalanceTransactionsListResponse>(
      { url: '/balance/transactions', query },
      options,
    );
  }
}

export class Products extends Resource {
  /** The products your account can issue, the current one first. */
  list(options?: RequestOptions): List<api.Product> {
    return this.pages<api.ProductsListData, api.ProductsListResponse>({ url: '/products' }, options);
  }
}

export class Quotes extends Resource {
  /** What a card or a top-up would cost, fees included. Nothing is debited. */
  create(body: api.CreateQuoteRequest, options?: RequestOptions): Promise<Answer<api.Quote>> {
    return this.send<api.QuotesCreateData, api.QuotesCreateResponse>(
      { method: 'POST', url: '/quotes', body },
      options,
    );
  }
}

export class Cards extends Resource {
  /** Issues a card and funds it. If it is `funding_pending`, use {@link waitUntilSettled}, or wait for its event. */
  create(body: api.CreateCardRequest, options?: IdempotentRequestOptions): Promise<Answer<api.Card>> {
    return this.send<api.CardsCreateData, api.CardsCreateResponse>(
      { method: 'POST', url: '/cards', body, keyed: true },
      options,
    );
  }

  get(cardId: string, options?: RequestOptions): Promise<Answer<api.Card>> {
    return this.send<api.CardsGetData, api.CardsGetResponse>(
      { method: 'GET', url: '/cards/{cardId}', path: { cardId } },
      options,
    );
  }

  list(query: QueryOf<api.CardsListData> = {}, options?: RequestOptions): List<api.Card> {
    return this.pages<api.CardsListData, api.CardsListResponse>({ url: '/cards', query }, options);
  }

  freeze(cardId: string, options?: IdempotentRequestOptions): Promise<Answer<api.Card>> {
    return this.send<api.CardsFreezeData, api.CardsFreezeResponse>(
      { method: 'POST', url: '/cards/{cardId}/freeze', path: { cardId }, keyed: true },
      options,
    );
  }

  unfreeze(cardId: string, options?: IdempotentRequestOptions): Promise<Answer<api.Card>> {
    return this.send<api.CardsUnfreezeData, api.CardsUnfreezeResponse>(
      { method: 'POST', url: '/cards/{cardId}/unfreeze', path: { cardId }, keyed: true },
      options,
    );
  }

  /** Closes the card permanently and returns its balance to yours. */
  block(cardId: string, options?: IdempotentRequestOptions): Promise<Answer<api.Card>> {
    return this.send<api.CardsBlockData, api.CardsBlockResponse>(
      { method: 'POST', url: '/cards/{cardId}/block', path: { cardId }, keyed: true },
      options,
    );
  }

  /**
   * Polls a card until it is no longer `funding_pending`. Look at its `status`: it is `failed` if it could not be issued.
   * @throws {StillPendingError} at the deadline
   */
  waitUntilSettled(cardId: string, options: WaitOptions = {}): Promise<Answer<api.Card>> {
    return waitUntilSettled(cardId, 'funding_pending', (one) => this.get(cardId, one), options);
  }

  /** Number, CVV and expiry. Every attempt counts towards the limit, so the client only retries after 429. */
  getSecureDetails(cardId: string, options?: RequestOptions): Promise<Answer<api.SecureDetails>> {
    return this.send<api.CardsGetSecureDetailsData, api.CardsGetSecureDetailsResponse>(
      { method: 'GET', url: '/cards/{cardId}/secure-details', path: { cardId }, once: true },
      options,
    );
  }
}

export class Topups extends Resource {
  /** Loads an active card. If it is `pending`, use {@link waitUntilSettled}, or wait for its event. */
  create(
    cardId: string,
    body: api.CreateTopupRequest,
    options?: IdempotentRequestOptions,
  ): Promise<Answer<api.Topup>> {
    return this.send<api.TopupsCreateData, api.TopupsCreateResponse>(
      { method: 'POST', url: '/cards/{cardId}/topups', path: { cardId }, body, keyed: true },
      options,
    );
  }

  get(topupId: string, options?: RequestOptions): Promise<Answer<api.Topup>> {
    return this.send<api.TopupsGetData, api.TopupsGetResponse>(
      { method: 'GET', url: '/topups/{topupId}', path: { topupId } },
      options,
    );
  }

  /**
   * Polls a top-up until it is no longer `pending`. Look at its `status`: `succeeded` or `failed`.
   * @throws {StillPendingError} at the deadline
   */
  waitUntilSettled(topupId: string, options: WaitOptions = {}): Promise<Answer<api.Topup>> {
    return waitUntilSettled(topupId, 'pending', (one) => this.get(topupId, one), options);
  }

  list(cardId: string, query: QueryOf<api.TopupsListData> = {}, options?: RequestOptions): List<api.Topup> {
    return this.pages<api.TopupsListData, api.TopupsListResponse>(
      { url: '/cards/{cardId}/topups', path: { cardId }, query },
      options,
    );
  }
}

export class Transactions extends Resource {
  /** A card's transactions, declines included, newest first. */
  list(
    cardId: string,
    query: QueryOf<api.TransactionsListData> = {},
    options?: RequestOptions,
  ): List<api.Transaction> {
    return this.pages<api.TransactionsListData, api.TransactionsListResponse>(
      { url: '/cards/{cardId}/transactions', path: { cardId }, query },
      options,
    );
  }
}

export class Deposits extends Resource {
  /** A new address for one payment of exactly `amount_usdt`. Live keys only. */
  create(body: api.CreateDepositRequest, options?: IdempotentRequestOptions): Promise<Answer<api.Deposit>> {
    return this.send<api.DepositsCreateData, api.DepositsCreateResponse>(
      { method: 'POST', url: '/funding/deposit-address', body, keyed: true },
      options,
    );
  }

  get(depositId: string, options?: RequestOptions): Promise<Answer<api.Deposit>> {
    return this.send<api.DepositsGetData, api.DepositsGetResponse>(
      { method: 'GET', url: '/funding/deposits/{depositId}', path: { depositId } },
      options,
    );
  }

  list(query: QueryOf<api.DepositsListData> = {}, options?: RequestOptions): List<api.Deposit> {
    return this.pages<api.DepositsListData, api.DepositsListResponse>(
      { url: '/funding/deposits', query },
      options,
    );
  }
}

export class WebhookEndpoint extends Resource {
  /** The endpoint without its secret. */
  get(options?: RequestOptions): Promise<Answer<api.WebhookEndpoint>> {
    return this.send<api.WebhookEndpointGetData, api.WebhookEndpointGetResponse>(
      { method: 'GET', url: '/webhook-endpoint' },
      options,
    );
  }

  /** Sets the URL and enables the endpoint. Only the first response has the `secret`: store it. */
  set(body: api.SetWebhookEndpointRequest, options?: RequestOptions): Promise<Answer<api.WebhookEndpoint>> {
    return this.send<api.WebhookEndpointSetData, api.WebhookEndpointSetResponse>(
      { method: 'PUT', url: '/webhook-endpoint', body },
      options,
    );
  }

  async delete(options?: RequestOptions): Promise<void> {
    await this.send<api.WebhookEndpointDeleteData, api.WebhookEndpointDeleteResponse>(
      { method: 'DELETE', url: '/webhook-endpoint', once: true },
      options,
    );
  }

  /**
   * Creates a new `secret`, which we sign with from now on. A second rotation would replace the first, so the client only
   * retries after 429.
   */
  rotateSecret(options?: RequestOptions): Promise<Answer<api.WebhookEndpoint>> {
    return this.send<api.WebhookEndpointRotateSecretData, api.WebhookEndpointRotateSecretResponse>(
      { method: 'POST', url: '/webhook-endpoint/rotate-secret', once: true },
      options,
    );
  }

  /** Sends a `ping` event. */
  test(options?: RequestOptions): Promise<Answer<api.Event>> {
    return this.send<api.WebhookEndpointTestData, api.WebhookEndpointTestResponse>(
      { method: 'POST', url: '/webhook-endpoint/test', once: true },
      options,
    );
  }
}

export class Events extends Resource {
  /** The last 30 days' events, delivered or not, newest first. */
  list(query: QueryOf<api.EventsListData> = {}, options?: RequestOptions): List<api.Event> {
    return this.pages<api.EventsListData, api.EventsListResponse>({ url: '/events', query }, options);
  }

  get(eventId: string, options?: RequestOptions): Promise<Answer<api.Event>> {
    return this.send<api.EventsGetData, api.EventsGetResponse>(
      { method: 'GET', url: '/events/{eventId}', path: { eventId } },
      options,
    );
  }

  /** Sends the event again right away, whatever its delivery status. */
  resend(eventId: string, options?: RequestOptions): Promise<Answer<api.Event>> {
    return this.send<api.EventsResendData, api.EventsResendResponse>(
      { method: 'POST', url: '/events/{eventId}/resend', path: { eventId }, once: true },
      options,
    );
  }
}

/** Test keys only. */
export class TestHelpers extends Resource {
  /** Credits pretend money: at most $100,000 per call, 60 calls in any hour. */
  creditBalance(
    body: api.CreditBalanceRequest,
    options?: IdempotentRequestOptions,
  ): Promise<Answer<api.Balance>> {
    return this.send<api.TestHelpersCreditBalanceData, api.TestHelpersCreditBalanceResponse>(
      { method: 'POST', url: '/test/credit', body, keyed: true },
      options,
    );
  }

  simulateTransaction(
    cardId: string,
    body: api.SimulateTransactionRequest,
    options?: IdempotentRequestOptions,
  ): Promise<Answer<api.Transaction>> {
    return this.send<api.TestHelpersSimulateTransactionData, api.TestHelpersSimulateTransactionResponse>(
      {
        method: 'POST',
        url: '/test/cards/{cardId}/simulate-transaction',
        path: { cardId },
        body,
        keyed: true,
      },
      options,
    );
  }
}

import type * as api from './generated/types.gen.ts';
import type {
  ApiResponse,
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
  ): Promise<ApiResponse<R>> {
    return this.#http.send<D, R>(operation, options);
  }

  protected settled<T extends { status: string }>(
    id: string,
    pendingStatus: T['status'],
    read: (options: RequestOptions) => Promise<T>,
    options: WaitOptions,
  ): Promise<T> {
    return waitUntilSettled({ id, pendingStatus, read, pause: this.#http.pause }, options);
  }

  protected download<D extends OperationData>(
    url: D['url'],
    query: D['query'],
    options?: RequestOptions,
  ): Promise<ReadableStream<Uint8Array>> {
    return this.#http.download<OperationData>({ method: 'GET', url, ...(query && { query }) }, options);
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

export class Reports extends Resource {
  /** Every change to your balance in a period, as CSV: `for await (const part of await …)`. */
  balanceTransactions(query: Period, options?: RequestOptions): Promise<ReadableStream<Uint8Array>> {
    return this.download<api.ReportsBalanceTransactionsData>('/reports/balance_transactions', query, options);
  }

  /** The transactions of all cards. */
  cardTransactions(query: Period, options?: RequestOptions): Promise<ReadableStream<Uint8Array>> {
    return this.download<api.ReportsCardTransactionsData>('/reports/card_transactions', query, options);
  }

  deposits(query: Period, options?: RequestOptions): Promise<ReadableStream<Uint8Array>> {
    return this.download<api.ReportsDepositsData>('/reports/deposits', query, options);
  }

  /** The authorizations of all cards, as they are now. */
  authorizations(query: Period, options?: RequestOptions): Promise<ReadableStream<Uint8Array>> {
    return this.download<api.ReportsAuthorizationsData>('/reports/authorizations', query, options);
  }
}

type Period = QueryOf<api.ReportsBalanceTransactionsData>;

export class Statements extends Resource {
  /** A month, as `2026-10`, of your balance and your cards; the current one up to now. */
  get(month: string, options?: RequestOptions): Promise<ApiResponse<api.Statement>> {
    return this.send<api.StatementsGetData, api.StatementsGetResponse>(
      { method: 'GET', url: '/statements/{month}', path: { month } },
      options,
    );
  }
}

export class Account extends Resource {
  /** Tells you which account and mode the key belongs to. */
  ping(options?: RequestOptions): Promise<ApiResponse<api.Ping>> {
    return this.send<api.AccountPingData, api.AccountPingResponse>({ method: 'GET', url: '/ping' }, options);
  }
}

export class Balance extends Resource {
  get(options?: RequestOptions): Promise<ApiResponse<api.Balance>> {
    return this.send<api.BalanceGetData, api.BalanceGetResponse>({ method: 'GET', url: '/balance' }, options);
  }

  /** When you are told that your balance is low. */
  getAlert(options?: RequestOptions): Promise<ApiResponse<api.BalanceAlert>> {
    return this.send<api.BalanceGetAlertData, api.BalanceGetAlertResponse>(
      { method: 'GET', url: '/balance/alert' },
      options,
    );
  }

  /** Sets the threshold of `balance.low`; null turns the alert off. */
  setAlert(
    body: api.SetBalanceAlertRequest,
    options?: RequestOptions,
  ): Promise<ApiResponse<api.BalanceAlert>> {
    return this.send<api.BalanceSetAlertData, api.BalanceSetAlertResponse>(
      { method: 'PUT', url: '/balance/alert', body },
      options,
    );
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
  create(body: api.CreateQuoteRequest, options?: RequestOptions): Promise<ApiResponse<api.Quote>> {
    return this.send<api.QuotesCreateData, api.QuotesCreateResponse>(
      { method: 'POST', url: '/quotes', body },
      options,
    );
  }
}

export class Cards extends Resource {
  /** Issues a card and funds it. If it is `funding_pending`, use {@link waitUntilSettled}, or wait for its event. */
  create(body: api.CreateCardRequest, options?: IdempotentRequestOptions): Promise<ApiResponse<api.Card>> {
    return this.send<api.CardsCreateData, api.CardsCreateResponse>(
      { method: 'POST', url: '/cards', body, keyed: true },
      options,
    );
  }

  get(cardId: string, options?: RequestOptions): Promise<ApiResponse<api.Card>> {
    return this.send<api.CardsGetData, api.CardsGetResponse>(
      { method: 'GET', url: '/cards/{cardId}', path: { cardId } },
      options,
    );
  }

  list(query: QueryOf<api.CardsListData> = {}, options?: RequestOptions): List<api.Card> {
    return this.pages<api.CardsListData, api.CardsListResponse>({ url: '/cards', query }, options);
  }

  /** Changes the fields that you send: null removes one, and in `metadata` a key. */
  update(
    cardId: string,
    body: api.UpdateCardRequest,
    options?: IdempotentRequestOptions,
  ): Promise<ApiResponse<api.Card>> {
    return this.send<api.CardsUpdateData, api.CardsUpdateResponse>(
      { method: 'PATCH', url: '/cards/{cardId}', path: { cardId }, body, keyed: true },
      options,
    );
  }

  freeze(cardId: string, options?: IdempotentRequestOptions): Promise<ApiResponse<api.Card>> {
    return this.send<api.CardsFreezeData, api.CardsFreezeResponse>(
      { method: 'POST', url: '/cards/{cardId}/freeze', path: { cardId }, keyed: true },
      options,
    );
  }

  unfreeze(cardId: string, options?: IdempotentRequestOptions): Promise<ApiResponse<api.Card>> {
    return this.send<api.CardsUnfreezeData, api.CardsUnfreezeResponse>(
      { method: 'POST', url: '/cards/{cardId}/unfreeze', path: { cardId }, keyed: true },
      options,
    );
  }

  /** Closes the card permanently and returns its balance to yours. */
  block(cardId: string, options?: IdempotentRequestOptions): Promise<ApiResponse<api.Card>> {
    return this.send<api.CardsBlockData, api.CardsBlockResponse>(
      { method: 'POST', url: '/cards/{cardId}/block', path: { cardId }, keyed: true },
      options,
    );
  }

  /**
   * Polls a card until it is no longer `funding_pending`. Look at its `status`: it is `failed` if it could not be issued.
   * @throws {StillPendingError} at the deadline
   */
  waitUntilSettled(cardId: string, options: WaitOptions = {}): Promise<ApiResponse<api.Card>> {
    return this.settled(cardId, 'funding_pending', (one) => this.get(cardId, one), options);
  }

  /** Number, CVV and expiry. Every attempt counts towards the limit, so the client only retries after 429. */
  getSecureDetails(cardId: string, options?: RequestOptions): Promise<ApiResponse<api.SecureDetails>> {
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
  ): Promise<ApiResponse<api.Topup>> {
    return this.send<api.TopupsCreateData, api.TopupsCreateResponse>(
      { method: 'POST', url: '/cards/{cardId}/topups', path: { cardId }, body, keyed: true },
      options,
    );
  }

  get(topupId: string, options?: RequestOptions): Promise<ApiResponse<api.Topup>> {
    return this.send<api.TopupsGetData, api.TopupsGetResponse>(
      { method: 'GET', url: '/topups/{topupId}', path: { topupId } },
      options,
    );
  }

  /**
   * Polls a top-up until it is no longer `pending`. Look at its `status`: `succeeded` or `failed`.
   * @throws {StillPendingError} at the deadline
   */
  waitUntilSettled(topupId: string, options: WaitOptions = {}): Promise<ApiResponse<api.Topup>> {
    return this.settled(topupId, 'pending', (one) => this.get(topupId, one), options);
  }

  list(cardId: string, query: QueryOf<api.TopupsListData> = {}, options?: RequestOptions): List<api.Topup> {
    return this.pages<api.TopupsListData, api.TopupsListResponse>(
      { url: '/cards/{cardId}/topups', path: { cardId }, query },
      options,
    );
  }
}

export class Withdrawals extends Resource {
  /** Moves money from a card back to the balance. If it is `pending`, use {@link waitUntilSettled}, or wait for its event. */
  create(
    cardId: string,
    body: api.CreateWithdrawalRequest,
    options?: IdempotentRequestOptions,
  ): Promise<ApiResponse<api.Withdrawal>> {
    return this.send<api.WithdrawalsCreateData, api.WithdrawalsCreateResponse>(
      { method: 'POST', url: '/cards/{cardId}/withdrawals', path: { cardId }, body, keyed: true },
      options,
    );
  }

  get(withdrawalId: string, options?: RequestOptions): Promise<ApiResponse<api.Withdrawal>> {
    return this.send<api.WithdrawalsGetData, api.WithdrawalsGetResponse>(
      { method: 'GET', url: '/withdrawals/{withdrawalId}', path: { withdrawalId } },
      options,
    );
  }

  /**
   * Polls a withdrawal until it is no longer `pending`. Look at its `status`: `succeeded` or `failed`.
   * @throws {StillPendingError} at the deadline
   */
  waitUntilSettled(withdrawalId: string, options: WaitOptions = {}): Promise<ApiResponse<api.Withdrawal>> {
    return this.settled(withdrawalId, 'pending', (one) => this.get(withdrawalId, one), options);
  }

  list(
    cardId: string,
    query: QueryOf<api.WithdrawalsListData> = {},
    options?: RequestOptions,
  ): List<api.Withdrawal> {
    return this.pages<api.WithdrawalsListData, api.WithdrawalsListResponse>(
      { url: '/cards/{cardId}/withdrawals', path: { cardId }, query },
      options,
    );
  }
}

export class Transactions extends Resource {
  /** The transactions of all cards, declines included, newest first. */
  listAll(query: QueryOf<api.TransactionsListAllData> = {}, options?: RequestOptions): List<api.Transaction> {
    return this.pages<api.TransactionsListAllData, api.TransactionsListAllResponse>(
      { url: '/transactions', query },
      options,
    );
  }

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

export class Authorizations extends Resource {
  get(authorizationId: string, options?: RequestOptions): Promise<ApiResponse<api.Authorization>> {
    return this.send<api.AuthorizationsGetData, api.AuthorizationsGetResponse>(
      { method: 'GET', url: '/authorizations/{authorizationId}', path: { authorizationId } },
      options,
    );
  }

  /** The authorizations of all cards, declined ones included, newest first. */
  listAll(
    query: QueryOf<api.AuthorizationsListAllData> = {},
    options?: RequestOptions,
  ): List<api.Authorization> {
    return this.pages<api.AuthorizationsListAllData, api.AuthorizationsListAllResponse>(
      { url: '/authorizations', query },
      options,
    );
  }

  /** A card's authorizations, declined ones included, newest first. */
  list(
    cardId: string,
    query: QueryOf<api.AuthorizationsListData> = {},
    options?: RequestOptions,
  ): List<api.Authorization> {
    return this.pages<api.AuthorizationsListData, api.AuthorizationsListResponse>(
      { url: '/cards/{cardId}/authorizations', path: { cardId }, query },
      options,
    );
  }
}

export class SpendingLimits extends Resource {
  /** A card's limits, then your account's, each with what was spent of it. */
  list(cardId: string, options?: RequestOptions): List<api.SpendingLimit> {
    return this.pages<api.SpendingLimitsListData, api.SpendingLimitsListResponse>(
      { url: '/cards/{cardId}/spending-limits', path: { cardId } },
      options,
    );
  }
}

export class Operations extends Resource {
  /** What became of a request, by the `operationId` of its `lastResponse` or error. */
  get(operationId: string, options?: RequestOptions): Promise<ApiResponse<api.Operation>> {
    return this.send<api.OperationsGetData, api.OperationsGetResponse>(
      { method: 'GET', url: '/operations/{operationId}', path: { operationId } },
      options,
    );
  }

  /** The last 30 days' operations, newest first; with `idempotency_key`, one at most. */
  list(query: QueryOf<api.OperationsListData> = {}, options?: RequestOptions): List<api.Operation> {
    return this.pages<api.OperationsListData, api.OperationsListResponse>(
      { url: '/operations', query },
      options,
    );
  }
}

export class Deposits extends Resource {
  /** A new address for one payment of exactly `amount_usdt`. Live keys only. */
  create(
    body: api.CreateDepositRequest,
    options?: IdempotentRequestOptions,
  ): Promise<ApiResponse<api.Deposit>> {
    return this.send<api.DepositsCreateData, api.DepositsCreateResponse>(
      { method: 'POST', url: '/funding/deposit-address', body, keyed: true },
      options,
    );
  }

  get(depositId: string, options?: RequestOptions): Promise<ApiResponse<api.Deposit>> {
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

export class ApiKeys extends Resource {
  /** Only this response has the `key` itself: store it. The client only retries after 429, since each attempt makes a key. */
  create(body: api.CreateApiKeyRequest, options?: RequestOptions): Promise<ApiResponse<api.ApiKey>> {
    return this.send<api.ApiKeysCreateData, api.ApiKeysCreateResponse>(
      { method: 'POST', url: '/api-keys', body, once: true },
      options,
    );
  }

  /** Newest first, with those that have expired or were revoked. */
  list(query: QueryOf<api.ApiKeysListData> = {}, options?: RequestOptions): List<api.ApiKey> {
    return this.pages<api.ApiKeysListData, api.ApiKeysListResponse>({ url: '/api-keys', query }, options);
  }

  get(keyId: string, options?: RequestOptions): Promise<ApiResponse<api.ApiKey>> {
    return this.send<api.ApiKeysGetData, api.ApiKeysGetResponse>(
      { method: 'GET', url: '/api-keys/{keyId}', path: { keyId } },
      options,
    );
  }

  /** The key stops working everywhere within 5 seconds, for good. */
  async revoke(keyId: string, options?: RequestOptions): Promise<void> {
    await this.send<api.ApiKeysRevokeData, api.ApiKeysRevokeResponse>(
      { method: 'DELETE', url: '/api-keys/{keyId}', path: { keyId } },
      options,
    );
  }

  /** Makes a key like this one, which expires after the overlap. The client only retries after 429. */
  rotate(
    keyId: string,
    body: api.RotateApiKeyRequest = {},
    options?: RequestOptions,
  ): Promise<ApiResponse<api.ApiKey>> {
    return this.send<api.ApiKeysRotateData, api.ApiKeysRotateResponse>(
      { method: 'POST', url: '/api-keys/{keyId}/rotate', path: { keyId }, body, once: true },
      options,
    );
  }
}

export class WebhookEndpoint extends Resource {
  /** The endpoint without its secret. */
  get(options?: RequestOptions): Promise<ApiResponse<api.WebhookEndpoint>> {
    return this.send<api.WebhookEndpointGetData, api.WebhookEndpointGetResponse>(
      { method: 'GET', url: '/webhook-endpoint' },
      options,
    );
  }

  /** Sets the URL and enables the endpoint. Only the first response has the `secret`: store it. */
  set(
    body: api.SetWebhookEndpointRequest,
    options?: RequestOptions,
  ): Promise<ApiResponse<api.WebhookEndpoint>> {
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
  rotateSecret(options?: RequestOptions): Promise<ApiResponse<api.WebhookEndpoint>> {
    return this.send<api.WebhookEndpointRotateSecretData, api.WebhookEndpointRotateSecretResponse>(
      { method: 'POST', url: '/webhook-endpoint/rotate-secret', once: true },
      options,
    );
  }

  /** Sends a `ping` event. */
  test(options?: RequestOptions): Promise<ApiResponse<api.Event>> {
    return this.send<api.WebhookEndpointTestData, api.WebhookEndpointTestResponse>(
      { method: 'POST', url: '/webhook-endpoint/test', once: true },
      options,
    );
  }
}

export class WebhookEndpoints extends Resource {
  /** The response has the `secret`: store it. A second request would create a second endpoint, so the client only retries after 429. */
  create(
    body: api.CreateWebhookEndpointRequest,
    options?: RequestOptions,
  ): Promise<ApiResponse<api.WebhookEndpoint>> {
    return this.send<api.WebhookEndpointsCreateData, api.WebhookEndpointsCreateResponse>(
      { method: 'POST', url: '/webhook-endpoints', body, once: true },
      options,
    );
  }

  /** The endpoints of the key's mode, newest first, without their secrets. */
  list(
    query: QueryOf<api.WebhookEndpointsListData> = {},
    options?: RequestOptions,
  ): List<api.WebhookEndpoint> {
    return this.pages<api.WebhookEndpointsListData, api.WebhookEndpointsListResponse>(
      { url: '/webhook-endpoints', query },
      options,
    );
  }

  get(endpointId: string, options?: RequestOptions): Promise<ApiResponse<api.WebhookEndpoint>> {
    return this.send<api.WebhookEndpointsGetData, api.WebhookEndpointsGetResponse>(
      { method: 'GET', url: '/webhook-endpoints/{endpointId}', path: { endpointId } },
      options,
    );
  }

  /** Changes the fields that you send. If it enables the endpoint, parked events are sent. */
  update(
    endpointId: string,
    body: api.UpdateWebhookEndpointRequest,
    options?: RequestOptions,
  ): Promise<ApiResponse<api.WebhookEndpoint>> {
    return this.send<api.WebhookEndpointsUpdateData, api.WebhookEndpointsUpdateResponse>(
      { method: 'PATCH', url: '/webhook-endpoints/{endpointId}', path: { endpointId }, body },
      options,
    );
  }

  async delete(endpointId: string, options?: RequestOptions): Promise<void> {
    await this.send<api.WebhookEndpointsDeleteData, api.WebhookEndpointsDeleteResponse>(
      { method: 'DELETE', url: '/webhook-endpoints/{endpointId}', path: { endpointId }, once: true },
      options,
    );
  }

  /**
   * Creates a new `secret`, which we sign with from now on. A second rotation would replace the first, so the client only
   * retries after 429.
   */
  rotateSecret(endpointId: string, options?: RequestOptions): Promise<ApiResponse<api.WebhookEndpoint>> {
    return this.send<api.WebhookEndpointsRotateSecretData, api.WebhookEndpointsRotateSecretResponse>(
      {
        method: 'POST',
        url: '/webhook-endpoints/{endpointId}/rotate-secret',
        path: { endpointId },
        once: true,
      },
      options,
    );
  }

  /** Sends a `ping` event to this endpoint alone. */
  test(endpointId: string, options?: RequestOptions): Promise<ApiResponse<api.Event>> {
    return this.send<api.WebhookEndpointsTestData, api.WebhookEndpointsTestResponse>(
      { method: 'POST', url: '/webhook-endpoints/{endpointId}/test', path: { endpointId }, once: true },
      options,
    );
  }

  /** Sends events to this endpoint again. A second request would start a second replay, so the client only retries after 429. */
  replay(
    endpointId: string,
    body: api.ReplayRequest,
    options?: RequestOptions,
  ): Promise<ApiResponse<api.WebhookReplay>> {
    return this.send<api.WebhookEndpointsReplayData, api.WebhookEndpointsReplayResponse>(
      {
        method: 'POST',
        url: '/webhook-endpoints/{endpointId}/replay',
        path: { endpointId },
        body,
        once: true,
      },
      options,
    );
  }

  /** How far a replay has got. */
  getReplay(
    endpointId: string,
    replayId: string,
    options?: RequestOptions,
  ): Promise<ApiResponse<api.WebhookReplay>> {
    return this.send<api.WebhookEndpointsGetReplayData, api.WebhookEndpointsGetReplayResponse>(
      {
        method: 'GET',
        url: '/webhook-endpoints/{endpointId}/replays/{replayId}',
        path: { endpointId, replayId },
      },
      options,
    );
  }
}

export class Events extends Resource {
  /** The last 30 days' events, delivered or not, newest first. */
  list(query: QueryOf<api.EventsListData> = {}, options?: RequestOptions): List<api.Event> {
    return this.pages<api.EventsListData, api.EventsListResponse>({ url: '/events', query }, options);
  }

  get(eventId: string, options?: RequestOptions): Promise<ApiResponse<api.Event>> {
    return this.send<api.EventsGetData, api.EventsGetResponse>(
      { method: 'GET', url: '/events/{eventId}', path: { eventId } },
      options,
    );
  }

  /** Sends the event again right away, whatever its delivery status, to the endpoint that `body` names, or to each that it is for. */
  resend(
    eventId: string,
    body: api.ResendEventRequest = {},
    options?: RequestOptions,
  ): Promise<ApiResponse<api.Event>> {
    return this.send<api.EventsResendData, api.EventsResendResponse>(
      { method: 'POST', url: '/events/{eventId}/resend', path: { eventId }, body, once: true },
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
  ): Promise<ApiResponse<api.Balance>> {
    return this.send<api.TestHelpersCreditBalanceData, api.TestHelpersCreditBalanceResponse>(
      { method: 'POST', url: '/test/credit', body, keyed: true },
      options,
    );
  }

  simulateTransaction(
    cardId: string,
    body: api.SimulateTransactionRequest,
    options?: IdempotentRequestOptions,
  ): Promise<ApiResponse<api.Transaction>> {
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

  /** A merchant asks for money on a card: `pending` or `declined`. */
  createAuthorization(
    cardId: string,
    body: api.CreateTestAuthorizationRequest,
    options?: IdempotentRequestOptions,
  ): Promise<ApiResponse<api.Authorization>> {
    return this.send<api.TestHelpersCreateAuthorizationData, api.TestHelpersCreateAuthorizationResponse>(
      {
        method: 'POST',
        url: '/test/cards/{cardId}/authorizations',
        path: { cardId },
        body,
        keyed: true,
      },
      options,
    );
  }

  /** The merchant asks for more. If that is declined, the last of `requests` says why. */
  incrementAuthorization(
    authorizationId: string,
    body: api.IncrementAuthorizationRequest,
    options?: IdempotentRequestOptions,
  ): Promise<ApiResponse<api.Authorization>> {
    return this.send<
      api.TestHelpersIncrementAuthorizationData,
      api.TestHelpersIncrementAuthorizationResponse
    >(
      {
        method: 'POST',
        url: '/test/authorizations/{authorizationId}/increment',
        path: { authorizationId },
        body,
        keyed: true,
      },
      options,
    );
  }

  /** The merchant takes its money: all that is left, or `amount`. */
  captureAuthorization(
    authorizationId: string,
    body: api.CaptureAuthorizationRequest = {},
    options?: IdempotentRequestOptions,
  ): Promise<ApiResponse<api.Transaction>> {
    return this.send<api.TestHelpersCaptureAuthorizationData, api.TestHelpersCaptureAuthorizationResponse>(
      {
        method: 'POST',
        url: '/test/authorizations/{authorizationId}/capture',
        path: { authorizationId },
        body,
        keyed: true,
      },
      options,
    );
  }

  /** The merchant gives back all that is left, or `amount`. */
  reverseAuthorization(
    authorizationId: string,
    body: api.ReverseAuthorizationRequest = {},
    options?: IdempotentRequestOptions,
  ): Promise<ApiResponse<api.Authorization>> {
    return this.send<api.TestHelpersReverseAuthorizationData, api.TestHelpersReverseAuthorizationResponse>(
      {
        method: 'POST',
        url: '/test/authorizations/{authorizationId}/reverse',
        path: { authorizationId },
        body,
        keyed: true,
      },
      options,
    );
  }

  /** The authorization expires now. */
  expireAuthorization(
    authorizationId: string,
    options?: IdempotentRequestOptions,
  ): Promise<ApiResponse<api.Authorization>> {
    return this.send<api.TestHelpersExpireAuthorizationData, api.TestHelpersExpireAuthorizationResponse>(
      {
        method: 'POST',
        url: '/test/authorizations/{authorizationId}/expire',
        path: { authorizationId },
        keyed: true,
      },
      options,
    );
  }

  /** A merchant takes money that it never asked for. */
  forceCapture(
    cardId: string,
    body: api.ForceCaptureRequest,
    options?: IdempotentRequestOptions,
  ): Promise<ApiResponse<api.Transaction>> {
    return this.send<api.TestHelpersForceCaptureData, api.TestHelpersForceCaptureResponse>(
      {
        method: 'POST',
        url: '/test/cards/{cardId}/force-capture',
        path: { cardId },
        body,
        keyed: true,
      },
      options,
    );
  }

  /** A deposit whose payment arrives by itself within 3 seconds. */
  createDeposit(
    body: api.CreateTestDepositRequest,
    options?: IdempotentRequestOptions,
  ): Promise<ApiResponse<api.Deposit>> {
    return this.send<api.TestHelpersCreateDepositData, api.TestHelpersCreateDepositResponse>(
      { method: 'POST', url: '/test/deposits', body, keyed: true },
      options,
    );
  }

  /** Settles what is in review of a test deposit. */
  resolveDeposit(
    depositId: string,
    body: api.ResolveTestDepositRequest,
    options?: IdempotentRequestOptions,
  ): Promise<ApiResponse<api.Deposit>> {
    return this.send<api.TestHelpersResolveDepositData, api.TestHelpersResolveDepositResponse>(
      { method: 'POST', url: '/test/deposits/{depositId}/resolve', path: { depositId }, body, keyed: true },
      options,
    );
  }

  /** What time it is in your test mode. */
  getClock(options?: RequestOptions): Promise<ApiResponse<api.TestClock>> {
    return this.send<api.TestHelpersGetClockData, api.TestHelpersGetClockResponse>(
      { method: 'GET', url: '/test/clock' },
      options,
    );
  }

  /** Moves the time of your test mode forward, up to a year at once. What is due by then begins within 10 seconds. */
  advanceClock(
    body: api.AdvanceTestClockRequest,
    options?: IdempotentRequestOptions,
  ): Promise<ApiResponse<api.TestClock>> {
    return this.send<api.TestHelpersAdvanceClockData, api.TestHelpersAdvanceClockResponse>(
      { method: 'POST', url: '/test/clock/advance', body, keyed: true },
      options,
    );
  }
}

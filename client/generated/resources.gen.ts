// Made from the API's OpenAPI document by "npm run client". Don't edit it.
import type { ApiResponse, HttpClient, IdempotentRequestOptions, RequestOptions } from '../http.ts';
import type { List } from '../list.ts';
import { OperationGroup } from '../operation-group.ts';
import type { WaitOptions } from '../settled.ts';
import type * as api from './types.gen.ts';

export class Account extends OperationGroup {
  /** Check an API key. Tells you which account and mode the key belongs to. */
  ping(options?: RequestOptions): Promise<ApiResponse<api.Ping>> {
    return this.send<api.Ping>({ method: 'GET', url: '/ping' }, options);
  }
}

export class Overview extends OperationGroup {
  /** Retrieve the overview. Your account at a glance: cards by status, 30 days of balance and spending, and what waits. It needs both `balance:read` and `cards:read`. */
  get(options?: RequestOptions): Promise<ApiResponse<api.Overview>> {
    return this.send<api.Overview>({ method: 'GET', url: '/overview' }, options);
  }
}

export class Balance extends OperationGroup {
  /** Retrieve your balance. The balance of the key's mode. */
  get(options?: RequestOptions): Promise<ApiResponse<api.Balance>> {
    return this.send<api.Balance>({ method: 'GET', url: '/balance' }, options);
  }

  /** Retrieve the balance alert. When we tell you that the balance of the key's mode is low. Its `threshold` is null if you never set it. */
  getAlert(options?: RequestOptions): Promise<ApiResponse<api.BalanceAlert>> {
    return this.send<api.BalanceAlert>({ method: 'GET', url: '/balance/alert' }, options);
  }

  /** Set the balance alert. Sets the threshold for the available balance. `balance.low` is sent when it falls below it, at once if it is below it now. `balance.recovered` is sent when it is at the threshold or above it again. Null turns the alert off. */
  setAlert(body: api.SetBalanceAlertRequest, options?: RequestOptions): Promise<ApiResponse<api.BalanceAlert>> {
    return this.send<api.BalanceAlert>({ method: 'PUT', url: '/balance/alert', body }, options);
  }
}

export class BalanceTransactions extends OperationGroup {
  /** List balance transactions. Every change to your balance, newest first. The amounts add up to its `total`. Money on hold is not listed until it is debited. */
  list(query: api.BalanceTransactionsListQuery = {}, options?: RequestOptions): List<api.BalanceTransaction> {
    return this.pages<api.BalanceTransaction>({ method: 'GET', url: '/balance/transactions', query }, options);
  }
}

export class Products extends OperationGroup {
  /** List products. The products your account can issue, the current one first. */
  list(options?: RequestOptions): List<api.Product> {
    return this.pages<api.Product>({ method: 'GET', url: '/products' }, options);
  }
}

export class Deposits extends OperationGroup {
  /** Create a deposit address. Creates an address for a USDT (TRC-20) payment. Send one payment of exactly `amount_usdt` to `address` before `expires_at`. Your balance is credited about a minute after the payment is in a block, and `deposit.confirmed` tells you. Create a new address for every deposit. A live key only. */
  create(body: api.CreateDepositRequest, options?: IdempotentRequestOptions): Promise<ApiResponse<api.Deposit>> {
    return this.send<api.Deposit>({ method: 'POST', url: '/funding/deposit-address', body, keyed: true }, options);
  }

  /** List deposits. Every deposit address you created, with its status and the payments it received, newest first. In test mode, the deposits of `POST /test/deposits`. */
  list(query: api.DepositsListQuery = {}, options?: RequestOptions): List<api.Deposit> {
    return this.pages<api.Deposit>({ method: 'GET', url: '/funding/deposits', query }, options);
  }

  /** Retrieve a deposit. The address, its status, and the payments it received. */
  get(depositId: string, options?: RequestOptions): Promise<ApiResponse<api.Deposit>> {
    return this.send<api.Deposit>({ method: 'GET', url: '/funding/deposits/{depositId}', path: { depositId } }, options);
  }
}

export class Quotes extends OperationGroup {
  /** Create a quote. What a card or a top-up would cost now, at your rates. Nothing is debited. */
  create(body: api.CreateQuoteRequest, options?: RequestOptions): Promise<ApiResponse<api.Quote>> {
    return this.send<api.Quote>({ method: 'POST', url: '/quotes', body }, options);
  }
}

export class Cards extends OperationGroup {
  /** Create a card. Issues a card and funds it. The amount and its fees are debited from your balance; see `POST /quotes`. 201: the card is active. 202: it is being issued; wait for `card.issued` or `card.issue_failed`, or poll `GET /cards/{cardId}`. Or use {@link waitUntilSettled}. */
  create(body: api.CreateCardRequest, options?: IdempotentRequestOptions): Promise<ApiResponse<api.Card>> {
    return this.send<api.Card>({ method: 'POST', url: '/cards', body, keyed: true }, options);
  }

  /** List cards. Newest first. */
  list(query: api.CardsListQuery = {}, options?: RequestOptions): List<api.Card> {
    return this.pages<api.Card>({ method: 'GET', url: '/cards', query }, options);
  }

  /** Change a card. Changes the fields that you send. Null removes a field. In `metadata`, null removes a key, and keys that you leave out stay. `spending_controls` are replaced whole. The card can have any status but `failed`. If anything changes, an event `card.updated` tells of it. */
  update(cardId: string, body: api.UpdateCardRequest, options?: IdempotentRequestOptions): Promise<ApiResponse<api.Card>> {
    return this.send<api.Card>({ method: 'PATCH', url: '/cards/{cardId}', path: { cardId }, body, keyed: true }, options);
  }

  /** Retrieve a card. The card as it is now. Poll this while the card is `funding_pending`. */
  get(cardId: string, options?: RequestOptions): Promise<ApiResponse<api.Card>> {
    return this.send<api.Card>({ method: 'GET', url: '/cards/{cardId}', path: { cardId } }, options);
  }

  /** Retrieve a card's secure details. The full card number, CVV and expiry, fetched live from the card network. This is disabled until we enable it for your account. You can make 3 requests in any minute and 20 in any 24 hours. A request also counts if the card network does not respond. The client only retries it after 429, since doing it twice differs from doing it once. */
  getSecureDetails(cardId: string, options?: RequestOptions): Promise<ApiResponse<api.SecureDetails>> {
    return this.send<api.SecureDetails>({ method: 'GET', url: '/cards/{cardId}/secure-details', path: { cardId }, once: true }, options);
  }

  /** Create a reveal link. Makes a link to a page of ours that shows a card's number, CVV and expiry to whoever opens it, once and within 5 minutes, so that they never reach your servers. Opening it counts as a reveal. An Idempotency-Key is ignored: if the response is lost, make another link. The client only retries it after 429, since doing it twice differs from doing it once. */
  createRevealLink(cardId: string, body: api.CreateRevealLinkRequest = {}, options?: RequestOptions): Promise<ApiResponse<api.RevealLink>> {
    return this.send<api.RevealLink>({ method: 'POST', url: '/cards/{cardId}/reveal-links', path: { cardId }, body, once: true }, options);
  }

  /** Freeze a card. The card has to be active. Authorizations decline until you unfreeze it. In live mode the card network has to confirm the change. If it takes too long, you get 503 `unavailable` and the change continues: the card's status and an event tell you when it is done. */
  freeze(cardId: string, options?: IdempotentRequestOptions): Promise<ApiResponse<api.Card>> {
    return this.send<api.Card>({ method: 'POST', url: '/cards/{cardId}/freeze', path: { cardId }, keyed: true }, options);
  }

  /** Unfreeze a card. The card has to be frozen. It becomes active again. In live mode the card network has to confirm the change. If it takes too long, you get 503 `unavailable` and the change continues: the card's status and an event tell you when it is done. */
  unfreeze(cardId: string, options?: IdempotentRequestOptions): Promise<ApiResponse<api.Card>> {
    return this.send<api.Card>({ method: 'POST', url: '/cards/{cardId}/unfreeze', path: { cardId }, keyed: true }, options);
  }

  /** Block a card permanently. The card has to be active or frozen. Its available balance goes back to your balance. In live mode the card network has to confirm the change. If it takes too long, you get 503 `unavailable` and the change continues: the card's status and an event tell you when it is done. */
  block(cardId: string, options?: IdempotentRequestOptions): Promise<ApiResponse<api.Card>> {
    return this.send<api.Card>({ method: 'POST', url: '/cards/{cardId}/block', path: { cardId }, keyed: true }, options);
  }

  /**
   * Polls until it is no longer `funding_pending`. Look at its `status`: it is `failed` if it did not succeed.
   * @throws {StillPendingError} at the deadline
   */
  waitUntilSettled(cardId: string, options: WaitOptions = {}): Promise<ApiResponse<api.Card>> {
    return this.settled(cardId, 'funding_pending', (one) => this.get(cardId, one), options);
  }
}

export class Topups extends OperationGroup {
  /** Top up a card. The card has to be active. The amount and its fees are debited from your balance. 201: the money is on the card. 202: the top-up is pending; wait for `topup.succeeded` or `topup.failed`, or poll `GET /topups/{topupId}`. Or use {@link waitUntilSettled}. */
  create(cardId: string, body: api.CreateTopupRequest, options?: IdempotentRequestOptions): Promise<ApiResponse<api.Topup>> {
    return this.send<api.Topup>({ method: 'POST', url: '/cards/{cardId}/topups', path: { cardId }, body, keyed: true }, options);
  }

  /** List a card's top-ups. Newest first. */
  list(cardId: string, query: api.TopupsListQuery = {}, options?: RequestOptions): List<api.Topup> {
    return this.pages<api.Topup>({ method: 'GET', url: '/cards/{cardId}/topups', path: { cardId }, query }, options);
  }

  /** Retrieve a top-up. The top-up as it is now. Poll this while it is `pending`. */
  get(topupId: string, options?: RequestOptions): Promise<ApiResponse<api.Topup>> {
    return this.send<api.Topup>({ method: 'GET', url: '/topups/{topupId}', path: { topupId } }, options);
  }

  /**
   * Polls until it is no longer `pending`. Look at its `status`: it is `failed` if it did not succeed.
   * @throws {StillPendingError} at the deadline
   */
  waitUntilSettled(topupId: string, options: WaitOptions = {}): Promise<ApiResponse<api.Topup>> {
    return this.settled(topupId, 'pending', (one) => this.get(topupId, one), options);
  }
}

export class Withdrawals extends OperationGroup {
  /** Withdraw from a card. Moves money from an active or a frozen card back to your balance, without a fee. 201: the money is in your balance. 202: the withdrawal is pending and the money is held on the card; wait for `withdrawal.succeeded` or `withdrawal.failed`, or poll `GET /withdrawals/{withdrawalId}`. Or use {@link waitUntilSettled}. */
  create(cardId: string, body: api.CreateWithdrawalRequest, options?: IdempotentRequestOptions): Promise<ApiResponse<api.Withdrawal>> {
    return this.send<api.Withdrawal>({ method: 'POST', url: '/cards/{cardId}/withdrawals', path: { cardId }, body, keyed: true }, options);
  }

  /** List a card's withdrawals. Newest first. */
  list(cardId: string, query: api.WithdrawalsListQuery = {}, options?: RequestOptions): List<api.Withdrawal> {
    return this.pages<api.Withdrawal>({ method: 'GET', url: '/cards/{cardId}/withdrawals', path: { cardId }, query }, options);
  }

  /** Retrieve a withdrawal. The withdrawal as it is now. Poll this while it is `pending`. */
  get(withdrawalId: string, options?: RequestOptions): Promise<ApiResponse<api.Withdrawal>> {
    return this.send<api.Withdrawal>({ method: 'GET', url: '/withdrawals/{withdrawalId}', path: { withdrawalId } }, options);
  }

  /**
   * Polls until it is no longer `pending`. Look at its `status`: it is `failed` if it did not succeed.
   * @throws {StillPendingError} at the deadline
   */
  waitUntilSettled(withdrawalId: string, options: WaitOptions = {}): Promise<ApiResponse<api.Withdrawal>> {
    return this.settled(withdrawalId, 'pending', (one) => this.get(withdrawalId, one), options);
  }
}

export class Transactions extends OperationGroup {
  /** List the transactions of all cards. Purchases, refunds and declines on all of your cards, newest first. */
  listAll(query: api.TransactionsListAllQuery = {}, options?: RequestOptions): List<api.Transaction> {
    return this.pages<api.Transaction>({ method: 'GET', url: '/transactions', query }, options);
  }

  /** List a card's transactions. Purchases, refunds and declines, newest first. */
  list(cardId: string, query: api.TransactionsListQuery = {}, options?: RequestOptions): List<api.Transaction> {
    return this.pages<api.Transaction>({ method: 'GET', url: '/cards/{cardId}/transactions', path: { cardId }, query }, options);
  }
}

export class Authorizations extends OperationGroup {
  /** List the authorizations of all cards. The authorizations on all of your cards, newest first, declined ones included. */
  listAll(query: api.AuthorizationsListAllQuery = {}, options?: RequestOptions): List<api.Authorization> {
    return this.pages<api.Authorization>({ method: 'GET', url: '/authorizations', query }, options);
  }

  /** Retrieve an authorization. The authorization as it is now. */
  get(authorizationId: string, options?: RequestOptions): Promise<ApiResponse<api.Authorization>> {
    return this.send<api.Authorization>({ method: 'GET', url: '/authorizations/{authorizationId}', path: { authorizationId } }, options);
  }

  /** List a card's authorizations. Newest first, declined ones included. */
  list(cardId: string, query: api.AuthorizationsListQuery = {}, options?: RequestOptions): List<api.Authorization> {
    return this.pages<api.Authorization>({ method: 'GET', url: '/cards/{cardId}/authorizations', path: { cardId }, query }, options);
  }
}

export class SpendingLimits extends OperationGroup {
  /** List a card's spending limits. The card's limits, then those of your account, each with what was spent of it. They are in the order in which they were given, on one page. */
  list(cardId: string, options?: RequestOptions): List<api.SpendingLimit> {
    return this.pages<api.SpendingLimit>({ method: 'GET', url: '/cards/{cardId}/spending-limits', path: { cardId } }, options);
  }
}

export class Reports extends OperationGroup {
  /** Download balance transactions. Every change to your balance in a period, as CSV, oldest first. Read it with `for await (const part of await …)`. */
  balanceTransactions(query: api.ReportsBalanceTransactionsQuery, options?: RequestOptions): Promise<ReadableStream<Uint8Array>> {
    return this.download({ method: 'GET', url: '/reports/balance_transactions', query }, options);
  }

  /** Download card transactions. The transactions of all cards in a period, as CSV, oldest first. `fees` is the sum of the fees. Read it with `for await (const part of await …)`. */
  cardTransactions(query: api.ReportsCardTransactionsQuery, options?: RequestOptions): Promise<ReadableStream<Uint8Array>> {
    return this.download({ method: 'GET', url: '/reports/card_transactions', query }, options);
  }

  /** Download deposits. The deposits that were created in a period, as they are now, as CSV, oldest first. Read it with `for await (const part of await …)`. */
  deposits(query: api.ReportsDepositsQuery, options?: RequestOptions): Promise<ReadableStream<Uint8Array>> {
    return this.download({ method: 'GET', url: '/reports/deposits', query }, options);
  }

  /** Download authorizations. The authorizations of all cards that were created in a period, declined ones included, as they are now, as CSV, oldest first. Read it with `for await (const part of await …)`. */
  authorizations(query: api.ReportsAuthorizationsQuery, options?: RequestOptions): Promise<ReadableStream<Uint8Array>> {
    return this.download({ method: 'GET', url: '/reports/authorizations', query }, options);
  }
}

export class Statements extends OperationGroup {
  /** Retrieve a statement. What changed your balance and the money on your cards in a month, by type. The current month is shown up to now. */
  get(month: string, options?: RequestOptions): Promise<ApiResponse<api.Statement>> {
    return this.send<api.Statement>({ method: 'GET', url: '/statements/{month}', path: { month } }, options);
  }
}

export class Operations extends OperationGroup {
  /** List operations. The operations of the last 30 days, newest first. With `idempotency_key`, there is one at most. */
  list(query: api.OperationsListQuery = {}, options?: RequestOptions): List<api.Operation> {
    return this.pages<api.Operation>({ method: 'GET', url: '/operations', query }, options);
  }

  /** Retrieve an operation. What became of a request that had an Idempotency-Key, by the `Operation-Id` of any response to it. Operations are kept for 30 days. */
  get(operationId: string, options?: RequestOptions): Promise<ApiResponse<api.Operation>> {
    return this.send<api.Operation>({ method: 'GET', url: '/operations/{operationId}', path: { operationId } }, options);
  }
}

export class Requests extends OperationGroup {
  /** List requests. The requests of the last 7 days, newest first, without successful GET requests. A page looks through 10,000 requests for those that its filters want, so one with filters can be short, or empty, while `has_more` is true. */
  list(query: api.RequestsListQuery = {}, options?: RequestOptions): List<api.Request> {
    return this.pages<api.Request>({ method: 'GET', url: '/requests', query }, options);
  }

  /** Retrieve a request. What became of a request, by the `Request-Id` of its response. It is here within about a second of the response, for 7 days. Successful GET requests are not. */
  get(requestId: string, options?: RequestOptions): Promise<ApiResponse<api.Request>> {
    return this.send<api.Request>({ method: 'GET', url: '/requests/{requestId}', path: { requestId } }, options);
  }
}

export class ApiKeys extends OperationGroup {
  /** Create an API key. Makes a key for your account, in the mode of the key that you send, which can do no more than that key. Only this response has the `key` itself, so store it. An Idempotency-Key is ignored: if the response is lost, delete the key that `GET /api-keys` shows, and make another. You can have 50 active keys in each mode. The client only retries it after 429, since doing it twice differs from doing it once. */
  create(body: api.CreateApiKeyRequest, options?: RequestOptions): Promise<ApiResponse<api.ApiKey>> {
    return this.send<api.ApiKey>({ method: 'POST', url: '/api-keys', body, once: true }, options);
  }

  /** List API keys. Your account's keys in this mode, newest first, with those that have expired or were revoked. */
  list(query: api.ApiKeysListQuery = {}, options?: RequestOptions): List<api.ApiKey> {
    return this.pages<api.ApiKey>({ method: 'GET', url: '/api-keys', query }, options);
  }

  /** Retrieve an API key. What the key may do, and when it was last used. */
  get(keyId: string, options?: RequestOptions): Promise<ApiResponse<api.ApiKey>> {
    return this.send<api.ApiKey>({ method: 'GET', url: '/api-keys/{keyId}', path: { keyId } }, options);
  }

  /** Revoke an API key. The key stops working everywhere within 5 seconds, for good, and stays in the list as `revoked`. You can revoke the key that you send, too. If none of your keys has `api_keys:write` any more, ask us for one. */
  revoke(keyId: string, options?: RequestOptions): Promise<void> {
    return this.sendForNothing({ method: 'DELETE', url: '/api-keys/{keyId}', path: { keyId } }, options);
  }

  /** Rotate an API key. Makes a key with the same `name`, `scopes`, `ip_allowlist` and `expires_at`. Both work until the overlap is over: then the old one expires. Only this response has the new `key` itself. An Idempotency-Key is ignored. The client only retries it after 429, since doing it twice differs from doing it once. */
  rotate(keyId: string, body: api.RotateApiKeyRequest = {}, options?: RequestOptions): Promise<ApiResponse<api.ApiKey>> {
    return this.send<api.ApiKey>({ method: 'POST', url: '/api-keys/{keyId}/rotate', path: { keyId }, body, once: true }, options);
  }
}

export class WorkbenchSessions extends OperationGroup {
  /** Create a workbench session. Makes a link that opens the workbench in a browser, once and within 5 minutes, for your account and the mode of the key that you send. The session can do no more than the key, and ends with it. Only this response has the `url`: whoever opens it has the session. An Idempotency-Key is ignored. You can have 100 sessions in each mode. The client only retries it after 429, since doing it twice differs from doing it once. */
  create(body: api.CreateWorkbenchSessionRequest = {}, options?: RequestOptions): Promise<ApiResponse<api.WorkbenchSession>> {
    return this.send<api.WorkbenchSession>({ method: 'POST', url: '/workbench-sessions', body, once: true }, options);
  }

  /** List workbench sessions. Your account's workbench sessions in this mode, newest first. Those that have ended are kept for 7 days. */
  list(query: api.WorkbenchSessionsListQuery = {}, options?: RequestOptions): List<api.WorkbenchSession> {
    return this.pages<api.WorkbenchSession>({ method: 'GET', url: '/workbench-sessions', query }, options);
  }

  /** End a workbench session. The session stops working everywhere within 5 seconds, and its link with it. The client only retries it after 429, since doing it twice differs from doing it once. */
  delete(sessionId: string, options?: RequestOptions): Promise<void> {
    return this.sendForNothing({ method: 'DELETE', url: '/workbench-sessions/{sessionId}', path: { sessionId }, once: true }, options);
  }
}

export class WebhookEndpoint extends OperationGroup {
  /** Retrieve the webhook endpoint. The oldest endpoint of the key's mode. If you have several, the other paths under `/webhook-endpoint` act on the oldest, too. */
  get(options?: RequestOptions): Promise<ApiResponse<api.WebhookEndpoint>> {
    return this.send<api.WebhookEndpoint>({ method: 'GET', url: '/webhook-endpoint' }, options);
  }

  /** Set the webhook endpoint. Sets where the oldest endpoint of the key's mode sends events, and enables it, or creates the first endpoint. The first response has the secret. Store it: we don't show it again. A new URL keeps the secret. Events that were parked while the endpoint was disabled are sent. The client only retries it after 429, since doing it twice differs from doing it once. */
  set(body: api.SetWebhookEndpointRequest, options?: RequestOptions): Promise<ApiResponse<api.WebhookEndpoint>> {
    return this.send<api.WebhookEndpoint>({ method: 'PUT', url: '/webhook-endpoint', body, once: true }, options);
  }

  /** Delete the webhook endpoint. We send nothing more there, and give up what was not delivered. The next endpoint is then the oldest. You can still read events with `GET /events`. The client only retries it after 429, since doing it twice differs from doing it once. */
  delete(options?: RequestOptions): Promise<void> {
    return this.sendForNothing({ method: 'DELETE', url: '/webhook-endpoint', once: true }, options);
  }

  /** Rotate the webhook secret. The response has the new secret, which we sign with from now on. Store it: we don't show it again. For 24 hours, until `previous_secret_expires_at`, the Standard Webhooks header has a signature with the previous secret too. The client only retries it after 429, since doing it twice differs from doing it once. */
  rotateSecret(options?: RequestOptions): Promise<ApiResponse<api.WebhookEndpoint>> {
    return this.send<api.WebhookEndpoint>({ method: 'POST', url: '/webhook-endpoint/rotate-secret', once: true }, options);
  }

  /** Send a test event. Sends an event of type `ping` to the oldest endpoint. It is delivered, retried and listed like any other. The client only retries it after 429, since doing it twice differs from doing it once. */
  test(options?: RequestOptions): Promise<ApiResponse<api.Event>> {
    return this.send<api.Event>({ method: 'POST', url: '/webhook-endpoint/test', once: true }, options);
  }
}

export class WebhookEndpoints extends OperationGroup {
  /** Create a webhook endpoint. Adds an endpoint to the key's mode, which can have up to 5, disabled ones included. It gets the events that happen from now on. The response has the secret. Store it: we don't show it again, so this path takes no Idempotency-Key. The client only retries it after 429, since doing it twice differs from doing it once. */
  create(body: api.CreateWebhookEndpointRequest, options?: RequestOptions): Promise<ApiResponse<api.WebhookEndpoint>> {
    return this.send<api.WebhookEndpoint>({ method: 'POST', url: '/webhook-endpoints', body, once: true }, options);
  }

  /** List webhook endpoints. The endpoints of the key's mode, newest first, without their secrets. */
  list(query: api.WebhookEndpointsListQuery = {}, options?: RequestOptions): List<api.WebhookEndpoint> {
    return this.pages<api.WebhookEndpoint>({ method: 'GET', url: '/webhook-endpoints', query }, options);
  }

  /** Retrieve a webhook endpoint. Where it sends events, and how its attempts went. */
  get(endpointId: string, options?: RequestOptions): Promise<ApiResponse<api.WebhookEndpoint>> {
    return this.send<api.WebhookEndpoint>({ method: 'GET', url: '/webhook-endpoints/{endpointId}', path: { endpointId } }, options);
  }

  /** Change a webhook endpoint. Changes the fields that you send. Other event types hold for events that happen from now on. If you enable it, its parked events are sent. */
  update(endpointId: string, body: api.UpdateWebhookEndpointRequest, options?: RequestOptions): Promise<ApiResponse<api.WebhookEndpoint>> {
    return this.send<api.WebhookEndpoint>({ method: 'PATCH', url: '/webhook-endpoints/{endpointId}', path: { endpointId }, body }, options);
  }

  /** Delete a webhook endpoint. We send nothing more there, and give up what was not delivered. The client only retries it after 429, since doing it twice differs from doing it once. */
  delete(endpointId: string, options?: RequestOptions): Promise<void> {
    return this.sendForNothing({ method: 'DELETE', url: '/webhook-endpoints/{endpointId}', path: { endpointId }, once: true }, options);
  }

  /** Rotate a webhook endpoint's secret. The response has the new secret, which we sign with from now on. Store it: we don't show it again. For 24 hours, until `previous_secret_expires_at`, the Standard Webhooks header has a signature with the previous secret too. The client only retries it after 429, since doing it twice differs from doing it once. */
  rotateSecret(endpointId: string, options?: RequestOptions): Promise<ApiResponse<api.WebhookEndpoint>> {
    return this.send<api.WebhookEndpoint>({ method: 'POST', url: '/webhook-endpoints/{endpointId}/rotate-secret', path: { endpointId }, once: true }, options);
  }

  /** Send a test event to a webhook endpoint. Sends an event of type `ping` to this endpoint alone, whatever its `event_types`. It is delivered, retried and listed like any other. The client only retries it after 429, since doing it twice differs from doing it once. */
  test(endpointId: string, options?: RequestOptions): Promise<ApiResponse<api.Event>> {
    return this.send<api.Event>({ method: 'POST', url: '/webhook-endpoints/{endpointId}/test', path: { endpointId }, once: true }, options);
  }

  /** Replay events. Sends events to this endpoint again, with the same ids and bodies, oldest first. What happens meanwhile is sent first. An endpoint has one replay at a time. The range can have up to 250,000 events. Replays, resent events and pings share a limit of one per second, in bursts of up to 60. The client only retries it after 429, since doing it twice differs from doing it once. */
  replay(endpointId: string, body: api.ReplayRequest, options?: RequestOptions): Promise<ApiResponse<api.WebhookReplay>> {
    return this.send<api.WebhookReplay>({ method: 'POST', url: '/webhook-endpoints/{endpointId}/replay', path: { endpointId }, body, once: true }, options);
  }

  /** Retrieve a replay. How far a replay has got. Replays are kept for 30 days, and are deleted with their endpoint. */
  getReplay(endpointId: string, replayId: string, options?: RequestOptions): Promise<ApiResponse<api.WebhookReplay>> {
    return this.send<api.WebhookReplay>({ method: 'GET', url: '/webhook-endpoints/{endpointId}/replays/{replayId}', path: { endpointId, replayId } }, options);
  }
}

export class Events extends OperationGroup {
  /** List events. The events of the last 30 days, newest first, whether or not you have a webhook endpoint. Use it to catch up on events you missed. */
  list(query: api.EventsListQuery = {}, options?: RequestOptions): List<api.Event> {
    return this.pages<api.Event>({ method: 'GET', url: '/events', query }, options);
  }

  /** Retrieve an event. The event with the attempts to deliver it, to each endpoint. */
  get(eventId: string, options?: RequestOptions): Promise<ApiResponse<api.Event>> {
    return this.send<api.Event>({ method: 'GET', url: '/events/{eventId}', path: { eventId } }, options);
  }

  /** Resend an event. Sends the event now, with the same id and body. If that attempt fails, the retry schedule starts over. The body is optional. The client only retries it after 429, since doing it twice differs from doing it once. */
  resend(eventId: string, body: api.ResendEventRequest = {}, options?: RequestOptions): Promise<ApiResponse<api.Event>> {
    return this.send<api.Event>({ method: 'POST', url: '/events/{eventId}/resend', path: { eventId }, body, once: true }, options);
  }
}

export class TestHelpers extends OperationGroup {
  /** Credit the test balance. Adds pretend money: at most $100,000 per call, and 60 calls in any hour. A test key only. */
  creditBalance(body: api.CreditBalanceRequest, options?: IdempotentRequestOptions): Promise<ApiResponse<api.Balance>> {
    return this.send<api.Balance>({ method: 'POST', url: '/test/credit', body, keyed: true }, options);
  }

  /** Simulate a transaction. Simulates a purchase, decline or refund on a test card. The card has to be active unless you set `force`. As in live mode, money moves, fees are debited, and an event is sent. A purchase that spending controls refuse, or above the card's available balance, is declined. A test key only. */
  simulateTransaction(cardId: string, body: api.SimulateTransactionRequest, options?: IdempotentRequestOptions): Promise<ApiResponse<api.Transaction>> {
    return this.send<api.Transaction>({ method: 'POST', url: '/test/cards/{cardId}/simulate-transaction', path: { cardId }, body, keyed: true }, options);
  }

  /** Simulate an authorization. A merchant asks for money on a test card. If the card's status, spending controls and its available balance allow it, the amount is held, and the authorization is `pending`. Otherwise it is `declined`, and you pay the fee of a decline. A test key only. */
  createAuthorization(cardId: string, body: api.CreateTestAuthorizationRequest, options?: IdempotentRequestOptions): Promise<ApiResponse<api.Authorization>> {
    return this.send<api.Authorization>({ method: 'POST', url: '/test/cards/{cardId}/authorizations', path: { cardId }, body, keyed: true }, options);
  }

  /** Simulate an increment. The merchant asks for more. The authorization has to be pending. If the increment is declined, the authorization stays as it was: its last request says why. A test key only. */
  incrementAuthorization(authorizationId: string, body: api.IncrementAuthorizationRequest, options?: IdempotentRequestOptions): Promise<ApiResponse<api.Authorization>> {
    return this.send<api.Authorization>({ method: 'POST', url: '/test/authorizations/{authorizationId}/increment', path: { authorizationId }, body, keyed: true }, options);
  }

  /** Simulate a clearing. The merchant takes its money: all that is left, or `amount`, which can be more. It is never declined. What the authorization and the card can't pay comes from your balance. A test key only. */
  captureAuthorization(authorizationId: string, body: api.CaptureAuthorizationRequest = {}, options?: IdempotentRequestOptions): Promise<ApiResponse<api.Transaction>> {
    return this.send<api.Transaction>({ method: 'POST', url: '/test/authorizations/{authorizationId}/capture', path: { authorizationId }, body, keyed: true }, options);
  }

  /** Simulate a reversal. The merchant gives back all that is left, or `amount`. The authorization has to be pending. A test key only. */
  reverseAuthorization(authorizationId: string, body: api.ReverseAuthorizationRequest = {}, options?: IdempotentRequestOptions): Promise<ApiResponse<api.Authorization>> {
    return this.send<api.Authorization>({ method: 'POST', url: '/test/authorizations/{authorizationId}/reverse', path: { authorizationId }, body, keyed: true }, options);
  }

  /** Simulate an expiry. The authorization expires now, not at `expires_at`. It has to be pending. A test key only. */
  expireAuthorization(authorizationId: string, options?: IdempotentRequestOptions): Promise<ApiResponse<api.Authorization>> {
    return this.send<api.Authorization>({ method: 'POST', url: '/test/authorizations/{authorizationId}/expire', path: { authorizationId }, keyed: true }, options);
  }

  /** Simulate a clearing without an authorization. A merchant takes money that it never asked for. It is never declined: what the card does not have comes from your balance. Any card that was issued will do, a blocked one too. A test key only. */
  forceCapture(cardId: string, body: api.ForceCaptureRequest, options?: IdempotentRequestOptions): Promise<ApiResponse<api.Transaction>> {
    return this.send<api.Transaction>({ method: 'POST', url: '/test/cards/{cardId}/force-capture', path: { cardId }, body, keyed: true }, options);
  }

  /** Create a test deposit. Creates a deposit whose payment arrives by itself within 3 seconds, with the events and the changes of your test balance that a deposit has in live mode. A test key only. */
  createDeposit(body: api.CreateTestDepositRequest, options?: IdempotentRequestOptions): Promise<ApiResponse<api.Deposit>> {
    return this.send<api.Deposit>({ method: 'POST', url: '/test/deposits', body, keyed: true }, options);
  }

  /** Resolve a test deposit. Settles what is in review of a test deposit. For a live deposit, one of us does this after talking to you. A test key only. */
  resolveDeposit(depositId: string, body: api.ResolveTestDepositRequest, options?: IdempotentRequestOptions): Promise<ApiResponse<api.Deposit>> {
    return this.send<api.Deposit>({ method: 'POST', url: '/test/deposits/{depositId}/resolve', path: { depositId }, body, keyed: true }, options);
  }

  /** Retrieve the test clock. What time it is in your test mode, and whether what the last advance made due has begun. A test key only. */
  getClock(options?: RequestOptions): Promise<ApiResponse<api.TestClock>> {
    return this.send<api.TestClock>({ method: 'GET', url: '/test/clock' }, options);
  }

  /** Advance the test clock. Moves the time of your test mode forward. What is due by then begins within 10 seconds, in any order: webhook retries, expiring authorizations, test deposits and notices of expiring API keys. Limits and spending intervals follow it, too. It never goes back, can be at most ten years ahead, and can be advanced 1,000 times in an hour. A test key only. */
  advanceClock(body: api.AdvanceTestClockRequest, options?: IdempotentRequestOptions): Promise<ApiResponse<api.TestClock>> {
    return this.send<api.TestClock>({ method: 'POST', url: '/test/clock/advance', body, keyed: true }, options);
  }
}

export abstract class Resources {
  readonly account: Account;
  readonly overview: Overview;
  readonly balance: Balance;
  readonly balanceTransactions: BalanceTransactions;
  readonly products: Products;
  readonly deposits: Deposits;
  readonly quotes: Quotes;
  readonly cards: Cards;
  readonly topups: Topups;
  readonly withdrawals: Withdrawals;
  readonly transactions: Transactions;
  readonly authorizations: Authorizations;
  readonly spendingLimits: SpendingLimits;
  readonly reports: Reports;
  readonly statements: Statements;
  readonly operations: Operations;
  readonly requests: Requests;
  readonly apiKeys: ApiKeys;
  readonly workbenchSessions: WorkbenchSessions;
  readonly webhookEndpoint: WebhookEndpoint;
  readonly webhookEndpoints: WebhookEndpoints;
  readonly events: Events;
  readonly testHelpers: TestHelpers;

  constructor(http: HttpClient) {
    this.account = new Account(http);
    this.overview = new Overview(http);
    this.balance = new Balance(http);
    this.balanceTransactions = new BalanceTransactions(http);
    this.products = new Products(http);
    this.deposits = new Deposits(http);
    this.quotes = new Quotes(http);
    this.cards = new Cards(http);
    this.topups = new Topups(http);
    this.withdrawals = new Withdrawals(http);
    this.transactions = new Transactions(http);
    this.authorizations = new Authorizations(http);
    this.spendingLimits = new SpendingLimits(http);
    this.reports = new Reports(http);
    this.statements = new Statements(http);
    this.operations = new Operations(http);
    this.requests = new Requests(http);
    this.apiKeys = new ApiKeys(http);
    this.workbenchSessions = new WorkbenchSessions(http);
    this.webhookEndpoint = new WebhookEndpoint(http);
    this.webhookEndpoints = new WebhookEndpoints(http);
    this.events = new Events(http);
    this.testHelpers = new TestHelpers(http);
  }
}

/** Every type of event. */
export const EVENT_TYPES: readonly api.EventType[] = [
  'card.issued',
  'card.issue_failed',
  'card.updated',
  'card.frozen',
  'card.unfrozen',
  'card.blocked',
  'topup.succeeded',
  'topup.failed',
  'withdrawal.succeeded',
  'withdrawal.failed',
  'card.transaction.created',
  'card.authorization.created',
  'card.authorization.updated',
  'deposit.confirmed',
  'deposit.needs_review',
  'deposit.expired',
  'webhook_endpoint.failing',
  'webhook_endpoint.disabled',
  'api_key.expiring',
  'balance.low',
  'balance.recovered',
  'ping',
];

export { CardIssuing, type CardIssuingOptions } from './card-issuing.ts';
export {
  CardIssuingConnectionError,
  CardIssuingError,
  type ErrorDetails,
  StillPendingError,
  WebhookVerificationError,
} from './errors.ts';
export type {
  Balance,
  BalanceTransaction,
  Card,
  CardStatus,
  CreateCardRequest,
  CreateDepositRequest,
  CreateQuoteRequest,
  CreateTopupRequest,
  Deposit,
  DepositStatus,
  ErrorCode,
  ErrorIssue,
  ErrorType,
  Event,
  EventType,
  Fee,
  Mode,
  Ping,
  Product,
  Quote,
  SecureDetails,
  SetWebhookEndpointRequest,
  SimulateTransactionRequest,
  Topup,
  TopupStatus,
  Transaction,
  WebhookEndpoint,
  WebhookEvent,
} from './generated/types.gen.ts';
export type { Answer, IdempotentRequestOptions, LastResponse, RequestOptions } from './http.ts';
export type { List, Page } from './list.ts';
export type { WaitOptions } from './settled.ts';
export { type VerifyOptions, type WebhookHeaders, webhooks } from './webhooks.ts';

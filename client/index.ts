export { CardIssuing, type CardIssuingOptions } from './card-issuing.ts';
export {
  CardIssuingConnectionError,
  CardIssuingError,
  type ErrorDetails,
  StillPendingError,
  WebhookVerificationError,
} from './errors.ts';
export type * from './generated/models.gen.ts';
export { EVENT_TYPES } from './generated/resources.gen.ts';
export type {
  ApiResponse as Answer,
  IdempotentRequestOptions,
  LastResponse,
  RequestOptions,
} from './http.ts';
export type { List, Page } from './list.ts';
export type { WaitOptions } from './settled.ts';
export { type VerifyOptions, type WebhookHeaders, webhooks } from './webhooks.ts';

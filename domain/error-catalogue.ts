export type ErrorType =
  | 'invalid_request'
  | 'authentication'
  | 'permission'
  | 'not_found'
  | 'conflict'
  | 'payment'
  | 'limit'
  | 'rate_limit'
  | 'api';

interface CatalogueEntry {
  status: number;
  type: ErrorType;
  message: string;
}

/** Every error a partner can meet: partner-api.md, "Errors", and decisions.md, "Envelope". */
export const ERRORS = {
  validation_failed: { status: 400, type: 'invalid_request', message: 'The request is not valid.' },
  idempotency_key_missing: {
    status: 400,
    type: 'invalid_request',
    message: 'This endpoint needs the header Idempotency-Key: any string that is unique to this operation.',
  },
  idempotency_key_invalid: {
    status: 400,
    type: 'invalid_request',
    message: 'Idempotency-Key must be sent once, with 1 to 255 printable ASCII characters.',
  },
  invalid_api_key: {
    status: 401,
    type: 'authentication',
    message:
      'Send a valid API key once, as Authorization: Bearer <API_KEY>. This one is unknown, revoked or malformed.',
  },
  insufficient_funds: {
    status: 402,
    type: 'payment',
    message: 'The available balance does not cover the amount and its fees.',
  },
  provider_declined: {
    status: 402,
    type: 'payment',
    message: 'The card network declined. Nothing was debited.',
  },
  secure_details_disabled: {
    status: 403,
    type: 'permission',
    message: 'Secure card details are not enabled for this account.',
  },
  test_key_not_allowed: { status: 403, type: 'permission', message: 'This endpoint needs a live key.' },
  live_key_not_allowed: { status: 403, type: 'permission', message: 'This endpoint needs a test key.' },
  not_found: { status: 404, type: 'not_found', message: 'There is no such path. See the API reference.' },
  card_not_found: {
    status: 404,
    type: 'not_found',
    message: "There is no such card on this account in this key's mode.",
  },
  topup_not_found: {
    status: 404,
    type: 'not_found',
    message: "There is no such top-up on this account in this key's mode.",
  },
  deposit_not_found: {
    status: 404,
    type: 'not_found',
    message: "There is no such deposit on this account in this key's mode. Deposits are live mode's alone.",
  },
  event_not_found: {
    status: 404,
    type: 'not_found',
    message: "There is no such event of the last 30 days on this account in this key's mode.",
  },
  webhook_endpoint_not_found: {
    status: 404,
    type: 'not_found',
    message: "There is no webhook endpoint for this key's mode. PUT /webhook-endpoint makes one.",
  },
  method_not_allowed: {
    status: 405,
    type: 'invalid_request',
    message: 'This path does not have this method; see the Allow header.',
  },
  external_ref_taken: {
    status: 409,
    type: 'conflict',
    message: 'Another card of this account already has this external_ref.',
  },
  idempotency_in_flight: {
    status: 409,
    type: 'conflict',
    message: 'A request with this Idempotency-Key is still running. Retry shortly with the same key.',
  },
  no_product_configured: {
    status: 409,
    type: 'conflict',
    message: 'There is no card product this account can issue at the moment.',
  },
  invalid_state: {
    status: 409,
    type: 'conflict',
    message: 'The card is in a state that does not allow this.',
  },
  body_too_large: { status: 413, type: 'invalid_request', message: 'The body is larger than 64 KiB.' },
  headers_too_large: {
    status: 431,
    type: 'invalid_request',
    message: 'The path and the headers together are larger than 16 KiB.',
  },
  unsupported_media_type: {
    status: 415,
    type: 'invalid_request',
    message: 'Send the body as Content-Type: application/json, in UTF-8 and not compressed.',
  },
  idempotency_conflict: {
    status: 422,
    type: 'conflict',
    message: 'This Idempotency-Key was used for another request. Use a new key for a new request.',
  },
  limit_exceeded: { status: 422, type: 'limit', message: "This would exceed one of the account's limits." },
  product_not_allowed: {
    status: 422,
    type: 'invalid_request',
    message: 'product_code is not one of the products in GET /products.',
  },
  rate_limited: {
    status: 429,
    type: 'rate_limit',
    message: 'Too many requests. Retry after the time in Retry-After.',
  },
  reveal_limit_reached: {
    status: 429,
    type: 'rate_limit',
    message: 'At most 3 reveals in any minute and 20 in any 24 hours. Retry after the time in Retry-After.',
  },
  internal_error: {
    status: 500,
    type: 'api',
    message: 'Something went wrong on our side. Retrying with the same Idempotency-Key is safe.',
  },
  unavailable: {
    status: 503,
    type: 'api',
    message:
      'The service cannot answer right now. Retry with the same Idempotency-Key: an operation that began is joined.',
  },
} as const satisfies Record<string, CatalogueEntry>;

export type ErrorCode = keyof typeof ERRORS;

export const ERROR_TYPES = [
  'invalid_request',
  'authentication',
  'permission',
  'not_found',
  'conflict',
  'payment',
  'limit',
  'rate_limit',
  'api',
] as const;
type ErrorType = (typeof ERROR_TYPES)[number];

/** Every error a partner can meet, by status and type (docs/partners/errors.md). */
const CATALOGUE = [
  {
    status: 400,
    type: 'invalid_request',
    messages: {
      validation_failed: 'The request is not valid.',
      idempotency_key_missing:
        "This endpoint requires an Idempotency-Key header. Send a string that is unique to the operation, such as your order's id, and the same one with every retry.",
      idempotency_key_invalid:
        'Idempotency-Key must be sent once and have 1 to 255 printable ASCII characters.',
    },
  },
  {
    status: 401,
    type: 'authentication',
    messages: {
      invalid_api_key:
        'The API key is missing, malformed, unknown, revoked or expired. Send one key as Authorization: Bearer <API_KEY>.',
    },
  },
  {
    status: 402,
    type: 'payment',
    messages: {
      insufficient_funds:
        'The available balance does not cover the amount plus fees, and nothing was debited. Fund the balance, then send the request with a new Idempotency-Key: the one you used keeps this response.',
      insufficient_card_balance:
        "The card's available balance does not cover the amount, and nothing was moved. Use a new Idempotency-Key for a smaller amount: the one you used keeps this response.",
      provider_declined:
        'The card network declined the request, and nothing was debited. To ask again, use a new Idempotency-Key: the one you used keeps this response.',
    },
  },
  {
    status: 403,
    type: 'permission',
    messages: {
      account_suspended:
        'This account is suspended, so its keys cannot be used, and this request did nothing. If it repeats an earlier ' +
        'one, that one may have succeeded: keep its Idempotency-Key. Contact us.',
      ip_not_allowed:
        "This API key can't be used from your IP address, and this request did nothing. Use a key whose ip_allowlist contains the address.",
      cross_origin:
        "A workbench session's cookie only works for the pages of the service itself, and this request did nothing. Servers send an API key in Authorization.",
      workbench_session_mismatch:
        'The header Workbench-Session does not name the session of this browser, and this request did nothing. Another link was opened here: reload the page.',
      insufficient_scope:
        'This API key does not have the scope that this endpoint needs, and this request did nothing. Use a key that has it.',
      secure_details_disabled:
        'Secure card details are not enabled for this account. Contact us to enable them.',
      test_key_not_allowed: 'This endpoint requires a live key.',
      live_key_not_allowed: 'This endpoint requires a test key.',
    },
  },
  {
    status: 404,
    type: 'not_found',
    messages: {
      not_found: 'This path does not exist. Check it against the API reference.',
      card_not_found: "This account has no card with this id in this key's mode.",
      topup_not_found: "This account has no top-up with this id in this key's mode.",
      withdrawal_not_found: "This account has no withdrawal with this id in this key's mode.",
      authorization_not_found: "This account has no authorization with this id in this key's mode.",
      operation_not_found:
        "This account has no operation with this id in this key's mode. Operations are kept for 30 days.",
      request_not_found:
        "The log has no request with this id in this key's mode. The log keeps everything but successful GETs for 7 days, and new requests appear within about a second.",
      deposit_not_found:
        'This account has no deposit with this id in the mode of this key. A live deposit needs a live key, a test deposit a test key.',
      event_not_found:
        "This account has no event with this id in this key's mode. Events are kept for 30 days.",
      api_key_not_found: "This account has no API key with this id in this key's mode.",
      workbench_session_not_found:
        "This account has no workbench session with this id in this key's mode. Sessions are kept for 7 days after they end.",
      webhook_endpoint_not_found:
        "This account has no webhook endpoint in this key's mode. Create one with PUT /webhook-endpoint.",
      statement_not_found:
        'There is no statement of this month. Months are written as YYYY-MM, for example 2026-10, in UTC, and the month must have begun.',
      webhook_replay_not_found:
        "This webhook endpoint has no replay with this id in this key's mode. Replays are kept for 30 days, and are deleted with their endpoint.",
    },
  },
  {
    status: 405,
    type: 'invalid_request',
    messages: {
      method_not_allowed:
        'This path does not support this method. The Allow header lists the methods it supports.',
    },
  },
  {
    status: 409,
    type: 'conflict',
    messages: {
      external_ref_taken:
        'This account already has a card with this external_ref, and this request debited nothing. If an earlier response was lost, it may be the card you want: look at GET /cards?external_ref=… first. Use another external_ref and a new Idempotency-Key only if you want a second card.',
      webhook_endpoint_url_taken:
        'Another webhook endpoint of this mode has this URL already. Change that one, or use another URL.',
      idempotency_in_flight:
        'A request with this Idempotency-Key is still in progress. Retry shortly with the same key; a new key could do the same thing twice.',
      no_product_configured:
        'This account has no card product to issue at the moment, and nothing was debited. Contact us, then use a new Idempotency-Key: the one you used keeps this response.',
      deposits_not_configured:
        'USDT deposits are not available here, and this request did nothing. Ask us how to fund your balance.',
      invalid_state: "The card's current status does not allow this operation.",
    },
  },
  {
    status: 410,
    type: 'not_found',
    messages: {
      reveal_link_used: 'This link was opened before, or has expired. Ask for a new one.',
    },
  },
  {
    status: 413,
    type: 'invalid_request',
    messages: {
      body_too_large: 'The body is larger than 64 KiB.',
    },
  },
  {
    status: 431,
    type: 'invalid_request',
    messages: {
      headers_too_large: 'The path and headers together are larger than 16 KiB.',
    },
  },
  {
    status: 415,
    type: 'invalid_request',
    messages: {
      unsupported_media_type: 'Send the body uncompressed, in UTF-8, with Content-Type: application/json.',
    },
  },
  {
    status: 422,
    type: 'conflict',
    messages: {
      idempotency_conflict:
        'This Idempotency-Key belongs to an earlier request with another method, path or body, and this request did nothing. First find out whether the earlier one happened: send it again exactly as it was with this key to get its response, or look at GET /cards?external_ref=…, GET /cards/{cardId}/topups, GET /cards/{cardId}/withdrawals and GET /balance/transactions. Use a new key only for a request that you want in addition.',
    },
  },
  {
    status: 422,
    type: 'limit',
    messages: {
      limit_exceeded:
        "The request would exceed one of this account's limits, and nothing was debited. Once it fits, use a new Idempotency-Key: the one you used keeps this response.",
    },
  },
  {
    status: 422,
    type: 'invalid_request',
    messages: {
      product_not_allowed:
        'This account cannot issue this product_code, and nothing was debited. GET /products lists the ones it can. Use a new Idempotency-Key: the one you used keeps this response.',
    },
  },
  {
    status: 429,
    type: 'rate_limit',
    messages: {
      rate_limited:
        'Too many requests. Retry after the number of seconds in Retry-After, with the same Idempotency-Key.',
      reveal_limit_reached:
        'You can reveal card details 3 times in any minute and 20 times in any 24 hours. Retry after the number of seconds in Retry-After.',
    },
  },
  {
    status: 500,
    type: 'api',
    messages: {
      internal_error:
        'Something went wrong on our side, and the operation may have happened. It is safe to retry with the same Idempotency-Key. A new key could repeat the operation.',
    },
  },
  {
    status: 503,
    type: 'api',
    messages: {
      unavailable:
        'The service is temporarily unavailable. Retry with the same Idempotency-Key: if the operation has already started, you get its result. A new key could start a second one.',
    },
  },
] as const satisfies { status: number; type: ErrorType; messages: Record<string, string> }[];

type KeyOfAny<Group> = Group extends unknown ? keyof Group : never;
export type ErrorCode = KeyOfAny<(typeof CATALOGUE)[number]['messages']>;

/** The same by code. */
export const ERRORS = Object.fromEntries(
  CATALOGUE.flatMap(({ status, type, messages }) =>
    Object.entries(messages).map(([code, message]) => [code, { status, type, message }]),
  ),
) as Record<ErrorCode, { status: number; type: ErrorType; message: string }>;

export const ERROR_CODES = Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]];

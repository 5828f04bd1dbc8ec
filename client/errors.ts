import type { ErrorCode, ErrorIssue, ErrorType } from './generated/types.gen.ts';

/** The fields of an error besides its message. A field is null if it is not known. */
export interface ErrorDetails {
  status: number | null;
  type: ErrorType | 'connection';
  code: ErrorCode | ConnectionErrorCode | 'unexpected_response';
  param: string | null;
  issues: readonly ErrorIssue[];
  requestId: string | null;
  idempotencyKey: string | null;
  operationId: string | null;
  retryAfterSeconds: number | null;
}

export type ConnectionErrorCode = 'connection_failed' | 'timed_out';

/**
 * Every call that does not succeed throws one of these. Branch on `code`; `message` is for people and can
 * change.
 */
export class CardIssuingError extends Error implements ErrorDetails {
  override readonly name: string = 'CardIssuingError';
  /** The HTTP status; null if there was no response. */
  readonly status: number | null;
  /** The kind of error; `connection` if there was no response. */
  readonly type: ErrorDetails['type'];
  /** What went wrong. `unexpected_response`: something other than the API responded, such as a proxy. */
  readonly code: ErrorDetails['code'];
  /** The first field, query parameter or header that is wrong. */
  readonly param: string | null;
  /** Everything that is wrong with the request. */
  readonly issues: readonly ErrorIssue[];
  /** Quote it if you contact us about the error. */
  readonly requestId: string | null;
  /** The Idempotency-Key that was sent, yours or the client's. */
  readonly idempotencyKey: string | null;
  /**
   * The operation of the Idempotency-Key, for `operations.get`: the first request's if the key belongs to
   * another one.
   */
  readonly operationId: string | null;
  /** When to try again, from `Retry-After`. */
  readonly retryAfterSeconds: number | null;

  constructor(message: string, details: ErrorDetails, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.status = details.status;
    this.type = details.type;
    this.code = details.code;
    this.param = details.param;
    this.issues = details.issues;
    this.requestId = details.requestId;
    this.idempotencyKey = details.idempotencyKey;
    this.operationId = details.operationId;
    this.retryAfterSeconds = details.retryAfterSeconds;
  }
}

/**
 * No response arrived, even after all retries. The operation may or may not have happened: call again with
 * this error's `idempotencyKey` to get its result without doing it twice.
 */
export class CardIssuingConnectionError extends CardIssuingError {
  override readonly name = 'CardIssuingConnectionError';

  constructor(code: ConnectionErrorCode, message: string, idempotencyKey: string | null, cause: unknown) {
    super(
      message,
      {
        status: null,
        type: 'connection',
        code,
        param: null,
        issues: [],
        requestId: null,
        idempotencyKey,
        operationId: null,
        retryAfterSeconds: null,
      },
      cause,
    );
  }
}

/**
 * `waitUntilSettled` reached its deadline, and the card or top-up is still pending. It can still succeed:
 * wait again, or for its event, and don't make another one in its place.
 */
export class StillPendingError extends Error {
  override readonly name = 'StillPendingError';
  /** The card or top-up. */
  readonly id: string;

  constructor(id: string, deadlineMs: number, cause: unknown) {
    super(
      `${id} is not known to be settled after ${deadlineMs} ms, and can still succeed. Wait again, or for its event; do not ` +
        'make another one in its place.',
      cause === undefined ? undefined : { cause },
    );
    this.id = id;
  }
}

/** We did not send this webhook, or not recently. Respond with 400 and ignore it. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
  readonly reason: 'headers_missing' | 'signature_mismatch' | 'timestamp_outside_tolerance';

  constructor(reason: WebhookVerificationError['reason'], message: string) {
    super(message);
    this.reason = reason;
  }
}

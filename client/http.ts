import { CardIssuingConnectionError, CardIssuingError } from './errors.ts';
import type { Error as ErrorBody } from './generated/types.gen.ts';

/** It uses nothing of Node.js, so that a browser can run it, too. */
export interface HttpOptions {
  /** Says who is asking, in each request: an API key, or the workbench's session. */
  credentials: Record<string, string>;
  baseUrl: string;
  maxRetries: number;
  timeoutMs: number;
}

/** Options of one call. Anything omitted falls back to the client's setting. */
export interface RequestOptions {
  /** How long one attempt may take. */
  timeoutMs?: number;
  /** How often to retry a failed attempt; 0 turns retries off. */
  maxRetries?: number;
  /** Cancels the call, which then throws the signal's reason. */
  signal?: AbortSignal;
}

export interface IdempotentRequestOptions extends RequestOptions {
  /**
   * A string of your own that is unique to this operation, such as your order's id. A call with the same key
   * returns the same result and does nothing twice, even after a restart of your process. If you omit it, the
   * client generates one, which only protects its own retries.
   */
  idempotencyKey?: string;
}

export interface LastResponse {
  status: number;
  /** Quote it if you contact us about the request. */
  requestId: string | null;
  /** The Idempotency-Key that was sent, yours or the client's. */
  idempotencyKey: string | null;
  /** The operation of a request with an Idempotency-Key, for `operations.get`. */
  operationId: string | null;
  /** Whether this is the stored response to an earlier request with the same Idempotency-Key. */
  idempotentReplayed: boolean;
  /** What time it is in your test mode, once you have advanced its clock; else null. */
  testClock: string | null;
}

/** What the API returned. `lastResponse` is not enumerable, so serialization and comparison ignore it. */
export type ApiResponse<T> = T & { readonly lastResponse: LastResponse };

/** The request of an operation of the API. */
export interface Operation {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** The path after the base URL, with its parameters in braces. */
  url: string;
  path?: Record<string, string>;
  query?: Record<string, unknown>;
  body?: unknown;
  /** Whether the operation takes an Idempotency-Key. */
  keyed?: boolean;
  /** Whether doing it twice differs from doing it once. If so, it is only retried after 429. */
  once?: boolean;
}

const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 8_000;
/** If the API asks for a longer pause, the call fails at once, so that the caller can decide. */
const MAX_RETRY_AFTER_SECONDS = 60;

/** Waits, unless the signal is aborted; then it throws. */
export type Pause = (waitMs: number, signal?: AbortSignal) => Promise<void>;

const pauseFor: Pause = (waitMs, signal) =>
  new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', giveUp);
      resolve();
    }, waitMs);
    const giveUp = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    signal?.addEventListener('abort', giveUp, { once: true });
  });

/** Sends requests, and retries temporary failures with the same Idempotency-Key. */
export class HttpClient {
  readonly #options: HttpOptions;
  readonly pause: Pause;

  constructor(options: HttpOptions, pause: Pause = pauseFor) {
    this.#options = options;
    this.pause = pause;
  }

  /**
   * @throws {CardIssuingError} the API refused the request, or something else responded in its place
   * @throws {CardIssuingConnectionError} no response arrived
   */
  async send<R>(operation: Operation, options: IdempotentRequestOptions = {}): Promise<ApiResponse<R>> {
    const key = operation.keyed === true ? (options.idempotencyKey ?? crypto.randomUUID()) : null;
    if (key !== null && !/^[\x20-\x7e]{1,255}$/.test(key))
      throw new TypeError('idempotencyKey must have 1 to 255 printable ASCII characters');
    return this.#repeat(operation, options, () => this.#attempt<R>(operation, key, options));
  }

  /**
   * Begins a download. `timeoutMs` is the limit for its beginning.
   * @returns the body as it arrives. Reading it throws if the connection breaks, or the API cuts the transfer
   * @throws {CardIssuingError} the API refused the request, or something else responded in its place
   * @throws {CardIssuingConnectionError} no response arrived
   */
  async download(operation: Operation, options: RequestOptions = {}): Promise<ReadableStream<Uint8Array>> {
    return this.#repeat(operation, options, async () => {
      const { timeoutMs = this.#options.timeoutMs, signal } = options;
      const timeout = new AbortController();
      const timer = setTimeout(() => timeout.abort(), timeoutMs);
      let response: Response;
      let text: string;
      try {
        response = await fetch(this.#urlOf(operation), {
          headers: this.#options.credentials,
          redirect: 'manual',
          signal: signal === undefined ? timeout.signal : AbortSignal.any([timeout.signal, signal]),
        });
        const isCsv = response.headers.get('content-type')?.startsWith('text/csv') === true;
        if (response.ok && isCsv && response.body !== null) return response.body;
        text = await response.text();
      } catch (error) {
        throw this.#unreached(operation, null, timeout.signal.aborted ? timeoutMs : null, error);
      } finally {
        clearTimeout(timer);
      }
      throw this.#refused(operation, null, response, parse(text));
    });
  }

  async #repeat<T>(
    operation: Operation,
    { maxRetries = this.#options.maxRetries, signal }: RequestOptions,
    attemptOnce: () => Promise<T>,
  ): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await attemptOnce();
      } catch (error) {
        signal?.throwIfAborted();
        if (attempt >= maxRetries || !isWorthRepeating(error, operation.once === true)) throw error;
        await this.pause(pauseMs(attempt, error, Math.random()), signal).catch(() => {
          throw signal?.reason;
        });
      }
    }
  }

  async #attempt<R>(
    operation: Operation,
    key: string | null,
    { timeoutMs = this.#options.timeoutMs, signal }: RequestOptions,
  ): Promise<ApiResponse<R>> {
    const url = this.#urlOf(operation);
    const timeout = AbortSignal.timeout(timeoutMs);
    let response: Response;
    let text: string;
    try {
      response = await fetch(url, {
        method: operation.method,
        headers: {
          ...this.#options.credentials,
          ...(operation.body !== undefined && { 'content-type': 'application/json' }),
          ...(key !== null && { 'idempotency-key': key }),
        },
        ...(operation.body !== undefined && { body: JSON.stringify(operation.body) }),
        redirect: 'manual',
        signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
      });
      text = await response.text();
    } catch (error) {
      throw this.#unreached(operation, key, timeout.aborted ? timeoutMs : null, error);
    }
    const body = parse(text);
    const isBody = typeof body === 'object' && body !== null;
    if (!response.ok || (!isBody && response.status !== 204))
      throw this.#refused(operation, key, response, body);
    return withResponse(body as R, {
      status: response.status,
      requestId: response.headers.get('request-id'),
      idempotencyKey: key,
      operationId: response.headers.get('operation-id'),
      idempotentReplayed: response.headers.get('idempotent-replayed') === 'true',
      testClock: response.headers.get('test-clock'),
    });
  }

  /** @param timeoutMs null if it was not the time that ran out */
  #unreached(
    operation: Operation,
    key: string | null,
    timeoutMs: number | null,
    cause: unknown,
  ): CardIssuingConnectionError {
    const { host } = new URL(this.#options.baseUrl);
    const next = nextStep(operation, key);
    if (timeoutMs !== null) {
      const message = `${host} did not respond within ${timeoutMs} ms.${next}`;
      return new CardIssuingConnectionError('timed_out', message, key, cause);
    }
    const message = `The connection to ${host} failed: ${describeCause(cause)}.${next}`;
    return new CardIssuingConnectionError('connection_failed', message, key, cause);
  }

  #refused(operation: Operation, key: string | null, response: Response, body: unknown): CardIssuingError {
    const { host } = new URL(this.#options.baseUrl);
    const unexpected =
      `What responded at ${host}, with status ${response.status}, is not the API, or its response was cut off: look ` +
      `at proxies in between.${nextStep(operation, key)}`;
    return toError(response, body, key, unexpected);
  }

  #urlOf({ url, path = {}, query = {} }: Operation): string {
    const filled = url.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = path[name] ?? '';
      if (!/^[\w-]+$/.test(value))
        throw new TypeError(
          `${name} must have only letters, digits, _ and -, and not be empty: ${JSON.stringify(value)}`,
        );
      return value;
    });
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) parameters.set(name, String(value));
    }
    const search = parameters.toString();
    return `${this.#options.baseUrl}${filled}${search === '' ? '' : `?${search}`}`;
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function withResponse<R>(body: R, lastResponse: LastResponse): ApiResponse<R> {
  if (typeof body === 'object' && body !== null)
    Object.defineProperty(body, 'lastResponse', { value: lastResponse });
  return body as ApiResponse<R>;
}

/** What a caller who got no response should do, so that nothing happens twice. */
function nextStep({ method }: Operation, key: string | null): string {
  if (method === 'GET') return '';
  return key === null
    ? ' The request may have been carried out.'
    : " The request may have been carried out: retry with this error's idempotencyKey: nothing happens twice.";
}

/** `fetch` itself only says that it failed; what went wrong is the cause. */
function describeCause(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (!(cause instanceof Error)) return 'unknown reason';
  const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : '';
  return [code, cause.message].filter((part) => part !== '').join(', ') || cause.name;
}

function toError(
  response: Response,
  body: unknown,
  idempotencyKey: string | null,
  unexpected: string,
): CardIssuingError {
  const { status, headers } = response;
  const error = (body as Partial<ErrorBody> | undefined)?.error;
  return new CardIssuingError(error?.message ?? unexpected, {
    status,
    type: error?.type ?? 'api',
    code: error?.code ?? 'unexpected_response',
    param: error?.param ?? null,
    issues: error?.issues ?? [],
    requestId: error?.request_id ?? headers.get('request-id'),
    idempotencyKey,
    operationId: headers.get('operation-id'),
    retryAfterSeconds: readRetryAfter(headers.get('retry-after') ?? ''),
  });
}

/** It has seconds, or, from a proxy, the HTTP date until which to wait. */
function readRetryAfter(text: string): number | null {
  if (/^\d+$/.test(text)) return Number(text);
  const atMs = /^[A-Z][a-z]{2}, .* GMT$/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(atMs) ? null : Math.max(0, Math.ceil((atMs - Date.now()) / 1_000));
}

function isWorthRepeating(error: unknown, once: boolean): boolean {
  if (!(error instanceof CardIssuingError)) return false;
  if ((error.retryAfterSeconds ?? 0) > MAX_RETRY_AFTER_SECONDS) return false;
  if (error.status === 429) return true;
  if (once) return false;
  // A 2xx without a JSON object was cut off in transit.
  return (
    error.status === null ||
    error.status >= 500 ||
    error.status < 300 ||
    error.code === 'idempotency_in_flight'
  );
}

/**
 * Doubles after each attempt, minus up to half at random, so that many clients don't retry at the same
 * moment.
 * @param luck 0 to 1
 */
export function pauseMs(attempt: number, error: unknown, luck: number): number {
  const longest = Math.min(FIRST_DELAY_MS * 2 ** attempt, MAX_DELAY_MS);
  const asked = error instanceof CardIssuingError ? (error.retryAfterSeconds ?? 0) * 1_000 : 0;
  return Math.max(longest * (1 - luck / 2), asked);
}

import { errors } from 'undici';
import type { WebhookUrlProblem } from './webhook-url.ts';

/** The result of one attempt: either a status or an error. */
export interface DeliveryResult {
  /** `delivered` for 2xx; a redirect is a failure like any other. */
  outcome: 'delivered' | 'failed';
  /** The caller acts on a 410. */
  httpStatus: number | null;
  error: DeliveryError | null;
  /** From the DNS look-up to the status line, or to the failure. */
  durationMs: number;
  /**
   * The first 1,024 bytes of the response, for an operator to read; null without a status. A receiver may
   * echo the event, including names: treat it like the event's body, and keep it out of logs and histories.
   */
  answerStart: string | null;
}

/**
 * Why there is no HTTP status. Partners and operators see these codes: add new ones, but never rename one.
 */
type DeliveryError =
  | WebhookUrlProblem
  /** The name has no address, or no name server answered. */
  | 'dns_failed'
  | 'connection_refused'
  /** The receiver is unreachable, or did not accept the connection. */
  | 'connection_failed'
  /** The receiver closed the connection before the status line. */
  | 'connection_closed'
  | 'certificate_invalid'
  | 'certificate_host_mismatch'
  | 'tls_failed'
  /** The response is not HTTP/1.1, or its headers are over 16 KiB. */
  | 'answer_invalid'
  /** No status line arrived in time. */
  | 'timeout';

/** How a request over a connection ended. */
export type Exchange =
  | {
      status: number;
      /** On the clock of `performance.now()`. */
      answeredAtMs: number;
      /** The response's first bytes. */
      answerStart: Buffer;
      /** Whether the response ended, so that the connection can be reused. */
      ended: boolean;
    }
  | { status: null; error: unknown; anyByte: boolean };

/**
 * @param startedAtMs on the clock of `performance.now()`
 * @throws errors that say nothing about the receiver
 */
export function toDeliveryResult(answer: Exchange, startedAtMs: number): DeliveryResult {
  if (answer.status === null) {
    return failed(exchangeFailure(answer.error).code, performance.now() - startedAtMs);
  }
  return {
    outcome: answer.status >= 200 && answer.status < 300 ? 'delivered' : 'failed',
    httpStatus: answer.status,
    error: null,
    durationMs: Math.round(answer.answeredAtMs - startedAtMs),
    answerStart: readableText(answer.answerStart),
  };
}

/** The result of an attempt without a status. */
export function failed(error: DeliveryError, durationMs: number): DeliveryResult {
  return {
    outcome: 'failed',
    httpStatus: null,
    error,
    durationMs: Math.round(durationMs),
    answerStart: null,
  };
}

/** Characters that are unsafe in a terminal, or that PostgreSQL rejects. */
const CONTROLS = /[\p{Cc}\p{Cf}]/gu;

/**
 * Untrusted bytes as text that is safe to store and show: no controls except tab and newline, no partial
 * characters.
 */
function readableText(bytes: Uint8Array): string {
  // In streaming mode, so that a character cut off at the end is left out.
  const text = new TextDecoder().decode(bytes, { stream: true });
  return text
    .replaceAll('\r\n', '\n')
    .replace(CONTROLS, (control) => (control === '\n' || control === '\t' ? control : '\uFFFD'));
}

/** The attempt got no response; `code` says why. */
export class DeliveryFailure extends Error {
  override readonly name = 'DeliveryFailure';
  readonly code: DeliveryError;

  constructor(code: DeliveryError, options?: ErrorOptions) {
    super(`the webhook was not delivered: ${code}`, options);
    this.code = code;
  }
}

/** There is no connection, for a reason on our side; `cause` is the error. */
class OwnFailure extends Error {
  override readonly name = 'OwnFailure';
}

/** This machine is out of sockets, memory or ports. */
const OUT_OF = ['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EADDRNOTAVAIL'];
/** undici's codes for our own mistakes: an invalid header, or a connection used after it was closed. */
const MISUSED = ['UND_ERR_INVALID_ARG', 'UND_ERR_DESTROYED', 'UND_ERR_CLOSED', 'UND_ERR_ABORTED'];
const NOT_HTTP = ['UND_ERR_HEADERS_OVERFLOW', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH'];

/** What an error while connecting says about the receiver. */
export function connectFailure(error: unknown): DeliveryFailure | OwnFailure {
  if (error instanceof DeliveryFailure || error instanceof OwnFailure) return error;
  const code = errorCode(error);
  if (code === undefined || OUT_OF.includes(code)) {
    return new OwnFailure('this machine could not open a connection; see the cause', { cause: error });
  }
  return new DeliveryFailure(code === 'ECONNREFUSED' ? 'connection_refused' : 'connection_failed', {
    cause: error,
  });
}

/**
 * What a request's error says about the receiver.
 * @throws the error itself if it says nothing about the receiver
 */
export function exchangeFailure(error: unknown): DeliveryFailure {
  if (error instanceof DeliveryFailure) return error;
  if (error instanceof OwnFailure) throw error;
  const code = errorCode(error);
  if (code !== undefined && MISUSED.includes(code)) throw error;
  return new DeliveryFailure(classifyError(error, code), { cause: error });
}

function classifyError(error: unknown, code: string | undefined): DeliveryError {
  if (code === undefined || NOT_HTTP.includes(code)) return 'answer_invalid';
  // An unsolicited 100 or 101.
  if (error instanceof errors.SocketError && error.message.startsWith('bad ')) return 'answer_invalid';
  if (code.startsWith('ERR_SSL_')) return 'tls_failed';
  const systemError = /^E[A-Z]+$/.test(code);
  return systemError || error instanceof errors.SocketError ? 'connection_closed' : 'answer_invalid';
}

function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

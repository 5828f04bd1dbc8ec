import { errors } from 'undici';
import type { WebhookUrlProblem } from '../../domain/webhook-url.ts';

/** Why there is no HTTP status. Partners and operators see these, so they stay as they are; add, don't rename. */
export type DeliveryError =
  | WebhookUrlProblem
  /** The name has no address, or nobody said which. */
  | 'dns_failed'
  | 'connection_refused'
  /** No way there: unreachable, no answer to the connection. */
  | 'connection_failed'
  /** It was there, and went away before the status line. */
  | 'connection_closed'
  | 'certificate_invalid'
  | 'certificate_host_mismatch'
  | 'tls_failed'
  /** What came is not HTTP/1.1, or its headers are over 16 KiB. */
  | 'answer_invalid'
  /** No status line within the time an attempt has. */
  | 'timeout';

/** Nothing came back that counts as an answer; `code` says why. */
export class DeliveryFailure extends Error {
  override readonly name = 'DeliveryFailure';
  readonly code: DeliveryError;

  constructor(code: DeliveryError, options?: ErrorOptions) {
    super(`the webhook was not delivered: ${code}`, options);
    this.code = code;
  }
}

/** No connection for a reason that says nothing about the receiver; `cause` is the error itself. */
export class OwnFailure extends Error {
  override readonly name = 'OwnFailure';
}

/** This machine ran out of something. */
const OUT_OF = ['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EADDRNOTAVAIL'];
/** undici's words for our own mistakes: a header that can't be sent, a connection used after its end. */
const MISUSED = ['UND_ERR_INVALID_ARG', 'UND_ERR_DESTROYED', 'UND_ERR_CLOSED', 'UND_ERR_ABORTED'];
const NOT_HTTP = ['UND_ERR_HEADERS_OVERFLOW', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH'];

/** What the error of a connection that did not come about says about the receiver. */
export function connectFailure(error: unknown): DeliveryFailure | OwnFailure {
  if (error instanceof DeliveryFailure || error instanceof OwnFailure) return error;
  const code = codeOf(error);
  if (code === undefined || OUT_OF.includes(code)) {
    return new OwnFailure('this machine could not open a connection; see the cause', { cause: error });
  }
  return new DeliveryFailure(code === 'ECONNREFUSED' ? 'connection_refused' : 'connection_failed', {
    cause: error,
  });
}

/**
 * What the error of a request says about the receiver.
 * @throws the error itself where it says nothing about the receiver
 */
export function exchangeFailure(error: unknown): DeliveryFailure {
  if (error instanceof DeliveryFailure) return error;
  if (error instanceof OwnFailure) throw error;
  const code = codeOf(error);
  if (code !== undefined && MISUSED.includes(code)) throw error;
  return new DeliveryFailure(meaningOf(error, code), { cause: error });
}

function meaningOf(error: unknown, code: string | undefined): DeliveryError {
  if (code === undefined || NOT_HTTP.includes(code)) return 'answer_invalid';
  // A 100 or 101 that nobody asked for.
  if (error instanceof errors.SocketError && error.message.startsWith('bad ')) return 'answer_invalid';
  if (code.startsWith('ERR_SSL_')) return 'tls_failed';
  const systemError = /^E[A-Z]+$/.test(code);
  return systemError || error instanceof errors.SocketError ? 'connection_closed' : 'answer_invalid';
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

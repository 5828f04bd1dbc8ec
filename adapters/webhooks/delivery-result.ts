import { type DeliveryError, exchangeFailure } from './delivery-failure.ts';
import type { Exchange } from './exchange.ts';
import { readableText } from './readable-text.ts';

/** What came of one attempt: a status or an error, never both, never neither. */
export interface DeliveryResult {
  /** `delivered` for 2xx; a redirect is a failure like any other. */
  outcome: 'delivered' | 'failed';
  /** 410 is for the caller to act on. */
  httpStatus: number | null;
  error: DeliveryError | null;
  /** From the look-up to the status line, or to the failure. */
  durationMs: number;
  /**
   * The first 1,024 bytes of the answer, for an operator to read; null without a status. A receiver may send the event
   * back, names and all: keep it where the event's own body may be, and out of logs and histories.
   */
  answerStart: string | null;
}

/**
 * @param startedAtMs on the clock of `performance.now()`
 * @throws what says nothing about the receiver
 */
export function resultOf(answer: Exchange, startedAtMs: number): DeliveryResult {
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

/** No status, and why. */
export function failed(error: DeliveryError, durationMs: number): DeliveryResult {
  return {
    outcome: 'failed',
    httpStatus: null,
    error,
    durationMs: Math.round(durationMs),
    answerStart: null,
  };
}

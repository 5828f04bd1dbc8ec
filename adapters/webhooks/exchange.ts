import type { Client, Dispatcher } from 'undici';
import { DeliveryFailure } from './delivery-failure.ts';

const ANSWER_LIMIT_BYTES = 16_384;
const ANSWER_KEPT_BYTES = 1_024;
/** How long a receiver that has given its status may take over the rest. */
const ANSWER_GRACE_MS = 1_000;

export type Exchange =
  | {
      status: number;
      /** On the clock of `performance.now()`. */
      answeredAtMs: number;
      /** The answer's first bytes. */
      answerStart: Buffer;
      /** Whether the answer ended, so that the connection can carry another. */
      ended: boolean;
    }
  | { status: null; error: unknown; anyByte: boolean };

/**
 * One request over one connection, until its answer has ended, or its limit or its grace is used up; whatever comes
 * after the status line changes nothing about it. Where it did not end the caller has to destroy the connection.
 * @param deadlineAtMs for the status line, on the clock of `performance.now()`
 */
export function exchange(
  client: Client,
  request: Dispatcher.DispatchOptions,
  deadlineAtMs: number,
): Promise<Exchange> {
  return new Promise((resolve) => {
    let status: number | null = null;
    let answeredAtMs = 0;
    let anyByte = false;
    let readBytes = 0;
    let answerStart: Buffer = Buffer.alloc(0);
    let timer = setTimeout(
      () => settle(new DeliveryFailure('timeout')),
      Math.max(0, deadlineAtMs - performance.now()),
    );
    const settle = (error: unknown) => {
      clearTimeout(timer);
      if (status === null) resolve({ status, error, anyByte });
      else resolve({ status, answeredAtMs, answerStart, ended: error === null });
    };
    client.dispatch(request, {
      onRequestStart() {},
      onResponseStarted() {
        anyByte = true;
      },
      onResponseStart(_controller, statusCode) {
        if (statusCode < 200) return;
        status = statusCode;
        answeredAtMs = performance.now();
        clearTimeout(timer);
        timer = setTimeout(settle, ANSWER_GRACE_MS, 'grace over');
      },
      onResponseData(_controller, chunk) {
        readBytes += chunk.length;
        const room = ANSWER_KEPT_BYTES - answerStart.length;
        if (room > 0) answerStart = Buffer.concat([answerStart, chunk.subarray(0, room)]);
        if (readBytes > ANSWER_LIMIT_BYTES) settle('too long');
      },
      onResponseEnd() {
        settle(null);
      },
      onResponseError(_controller, error) {
        settle(error);
      },
    });
  });
}

import { CardIssuingError, StillPendingError } from './errors.ts';
import type { Pause, RequestOptions } from './http.ts';

/** How to wait for a card, a top-up or a withdrawal. `timeoutMs` and `maxRetries` are for each request. */
export interface WaitOptions extends RequestOptions {
  /** How long to wait altogether. Default: five minutes. */
  deadlineMs?: number;
}

interface Pending<T extends { status: string }> {
  id: string;
  pendingStatus: T['status'];
  read(options: RequestOptions): Promise<T>;
  pause: Pause;
}

const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 10_000;

/**
 * Reads a card, a top-up or a withdrawal again and again until it is settled. While the API is out of reach,
 * it keeps trying.
 * @throws {StillPendingError} at the deadline
 * @throws {CardIssuingError} an error that waiting does not cure, such as 404
 */
export async function waitUntilSettled<T extends { status: string }>(
  { id, pendingStatus, read, pause }: Pending<T>,
  { deadlineMs = 5 * 60_000, signal, ...perRequest }: WaitOptions,
): Promise<T> {
  const deadline = AbortSignal.timeout(deadlineMs);
  const either = signal === undefined ? deadline : AbortSignal.any([deadline, signal]);
  let failure: unknown;
  try {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 1.5, MAX_PAUSE_MS)) {
      let askedToWaitMs = 0;
      try {
        const found = await read({ ...perRequest, signal: either });
        if (found.status !== pendingStatus) return found;
      } catch (error) {
        either.throwIfAborted();
        if (!isTemporary(error)) throw error;
        failure = error;
        askedToWaitMs = (error.retryAfterSeconds ?? 0) * 1_000;
      }
      await pause(Math.max(pauseMs, askedToWaitMs), either);
    }
  } catch (error) {
    signal?.throwIfAborted();
    if (deadline.aborted) throw new StillPendingError(id, deadlineMs, failure);
    throw error;
  }
}

function isTemporary(error: unknown): error is CardIssuingError {
  if (!(error instanceof CardIssuingError)) return false;
  return error.status === null || error.status === 429 || error.status >= 500 || error.status < 300;
}

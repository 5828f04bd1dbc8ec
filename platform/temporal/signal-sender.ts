import { type Client, isGrpcServiceError } from '@temporalio/client';
import type { Payload } from '@temporalio/common';
import { currentAttempt } from './attempts.ts';

const PAGE = 100;
/** A decision is applied soon after its signal, so the signal is near the end of the history. */
const MAX_PAGES = 5;
const CALL_TIMEOUT_MS = 3_000;
const MAX_LENGTH = 200;

/**
 * In an activity: whom Temporal recorded as the sender of the newest such signal to its workflow that came
 * before the activity.
 * @param isThis whether the signal's input is the one in question
 * @returns null if Temporal recorded nobody, or no such signal is found
 * @throws ServiceError if Temporal can't be reached: the attempt is repeated
 */
type ReadSignalSender = (signal: string, isThis: (input: unknown) => boolean) => Promise<string | null>;

/** Reads senders from the workflow's history, because a workflow can't see who signals it. */
export function createReadSignalSender(client: Client): ReadSignalSender {
  const { namespace, loadedDataConverter } = client.options;

  return async (signal, isThis) => {
    const { workflowExecution, isLocal, activityId } = currentAttempt();
    if (workflowExecution === undefined) return null;
    const { workflowId } = workflowExecution;
    let runId: string = workflowExecution.runId;
    let nextPageToken = new Uint8Array();
    // A local activity has no event before it ends.
    let isBefore = isLocal;
    for (let page = 0; page < MAX_PAGES; page++) {
      const request = { namespace, execution: { workflowId, runId }, maximumPageSize: PAGE, nextPageToken };
      const history = await readPage(request);
      if (history === null) return null;
      let previousRunId = '';
      for (const event of history.history?.events ?? []) {
        if (event.activityTaskScheduledEventAttributes?.activityId === activityId) isBefore = true;
        previousRunId ||= event.workflowExecutionStartedEventAttributes?.continuedExecutionRunId ?? '';
        const signaled = event.workflowExecutionSignaledEventAttributes;
        if (!isBefore || signaled?.signalName !== signal) continue;
        if (isThis(await decodeInput(signaled.input?.payloads?.[0])))
          return printable(signaled.identity ?? '');
      }
      nextPageToken = new Uint8Array(history.nextPageToken ?? []);
      if (nextPageToken.length > 0) continue;
      // A run that continues another one can get signals that the earlier one received.
      if (previousRunId === '') return null;
      runId = previousRunId;
    }
    return null;
  };

  /** Undefined if there is none, or it can't be read: a signal can contain anything. */
  async function decodeInput(payload: Payload | undefined): Promise<unknown> {
    if (payload === undefined) return undefined;
    try {
      let decoded = [payload];
      for (const codec of loadedDataConverter.payloadCodecs) decoded = await codec.decode(decoded);
      return decoded[0] && loadedDataConverter.payloadConverter.fromPayload(decoded[0]);
    } catch {
      return undefined;
    }
  }

  async function readPage(
    request: Parameters<typeof client.workflowService.getWorkflowExecutionHistoryReverse>[0],
  ) {
    try {
      return await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
        client.workflowService.getWorkflowExecutionHistoryReverse(request),
      );
    } catch (error) {
      if (isGrpcServiceError(error) && DEFINITE.has(error.code)) return null;
      throw error;
    }
  }
}

/**
 * INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, UNIMPLEMENTED, UNAUTHENTICATED: asking again would not
 * help.
 */
const DEFINITE = new Set([3, 5, 7, 12, 16]);

/** An identity is whatever the sender says. */
function printable(identity: string): string | null {
  const text = identity.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, '?').slice(0, MAX_LENGTH);
  return text === '' ? null : text;
}

import { AsyncLocalStorage } from 'node:async_hooks';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import type { ActivityInboundCallsInterceptor, ActivityInterceptorsFactory } from '@temporalio/worker';
import type { Logger } from 'pino';
import { describeError } from '../process/describe-error.ts';
import { asAccount, asPartOf, asService, untilAborted } from '../process/work-context.ts';
import type { EncryptionCodec } from './encryption-codec.ts';
import { readWorkHeader } from './work-header.ts';

type ActivityInfo = Parameters<ActivityInterceptorsFactory>[0]['info'];

/** A margin so that Temporal, if it still knows the attempt, times it out first. */
const MARGIN_MS = 500;

/**
 * How long an attempt of a local activity may take. Temporal is not asked to time it out, because its timer
 * outlives the attempt and cancels a later one (temporalio/sdk-rust#1454).
 */
const LOCAL_ATTEMPT_MS = 8_500;

/** How often an attempt sends a heartbeat, if its options ask for one. */
export const SIGN_OF_LIFE_MS = 1_500;

const progress = new AsyncLocalStorage<{ latest: unknown; info: ActivityInfo }>();

/** Records the attempt's progress, which its next heartbeat sends to Temporal. */
export function reportProgress(latest: unknown): void {
  const own = progress.getStore();
  if (own !== undefined) own.latest = latest;
}

/** The attempt that is running. @throws Error outside of one */
export function currentAttempt(): ActivityInfo {
  const own = progress.getStore();
  if (own === undefined) throw new Error('no attempt of an activity is running');
  return own.info;
}

/** The interceptors around every attempt of an activity. */
export const attemptInterceptors = (
  logger: Logger,
  codec: EncryptionCodec,
): ActivityInterceptorsFactory[] => [
  ofItsWork(codec),
  () => ({ inbound: safeFailures(logger) }),
  untilGivenUp,
];

/**
 * Makes an attempt use its account's share of connections, and its log lines name its request and workflow.
 */
const ofItsWork =
  (codec: EncryptionCodec): ActivityInterceptorsFactory =>
  ({ info }) => ({
    inbound: {
      async execute(input, next) {
        const { account, requestId } = readWorkHeader(codec, input.headers);
        const workflowId = info.workflowExecution?.workflowId ?? null;
        return asPartOf({ requestId, workflowId }, () =>
          account === undefined
            ? asService('attempts', () => next(input))
            : asAccount(account, () => next(input)),
        );
      },
    },
  });

/**
 * Stops an attempt when its time is up, its workflow is cancelled or the worker stops: it loses its
 * connection and gets no other. Temporal doesn't cancel a local activity whose workflow task the worker has
 * lost, but the attempt's own time ends that too.
 */
const untilGivenUp: ActivityInterceptorsFactory = (context) => ({
  inbound: {
    async execute(input, next) {
      const { info, cancellationSignal } = context;
      const reported = { latest: undefined as unknown, info };
      const life = info.heartbeatTimeoutMs
        ? setInterval(() => context.heartbeat(reported.latest), SIGN_OF_LIFE_MS)
        : undefined;
      const expiry = new AbortController();
      const expire = () =>
        expiry.abort(ApplicationFailure.create({ type: 'GivenUp', message: 'the attempt took too long' }));
      const timer = setTimeout(
        expire,
        info.isLocal ? LOCAL_ATTEMPT_MS : info.startToCloseTimeoutMs + MARGIN_MS,
      );
      const givenUp = AbortSignal.any([cancellationSignal, expiry.signal]);
      try {
        return await progress.run(reported, () => untilAborted(givenUp, () => next(input)));
      } catch (error) {
        // Whatever the error is, the abort caused it.
        throw givenUp.aborted ? givenUp.reason : error;
      } finally {
        clearTimeout(timer);
        clearInterval(life);
      }
    },
  },
});

/**
 * Keeps foreign text out of histories, because an error message from a database or a library can quote a row.
 * A history only gets the kind of an error; the log has more, but no values.
 */
function safeFailures(logger: Logger): ActivityInboundCallsInterceptor {
  return {
    async execute(input, next) {
      try {
        return await next(input);
      } catch (error) {
        if (error instanceof ApplicationFailure || error instanceof CancelledFailure) throw error;
        const described = describeError(error);
        logger.warn({ error: described }, 'an activity failed and will be retried');
        throw ApplicationFailure.create({ type: described.name, message: described.summary });
      }
    },
  };
}

import { AsyncLocalStorage } from 'node:async_hooks';
import { ApplicationFailure } from '@temporalio/common';
import type { ActivityInterceptorsFactory } from '@temporalio/worker';
import type { Logger } from 'pino';
import { asAccount, asService, untilAborted } from '../process/work-context.ts';
import { accountOf } from '../workflows/account-header.ts';
import { safeFailures } from './safe-failures.ts';

/** So that the word that an attempt is over comes from Temporal, where it still knows of the attempt. */
const MARGIN_MS = 500;

/** How often Temporal hears of an attempt, where its options ask for that. */
export const SIGN_OF_LIFE_MS = 1_500;

const progress = new AsyncLocalStorage<{ latest: unknown }>();

/** Lets Temporal show how far the attempt that is under way has come, with its next sign of life. */
export function reportProgress(latest: unknown): void {
  const own = progress.getStore();
  if (own !== undefined) own.latest = latest;
}

/** What stands around every attempt of an activity. */
export const attemptInterceptors = (logger: Logger): ActivityInterceptorsFactory[] => [
  () => ({ inbound: safeFailures(logger) }),
  untilGivenUp,
];

/**
 * An attempt works in its account's turns, and no longer than it may: when its time is up, its workflow is cancelled or
 * the worker stops, it loses its connection and gets no other. Temporal does not say so where the worker has lost the
 * workflow task that a local activity belonged to: the attempt's own time ends that.
 */
const untilGivenUp: ActivityInterceptorsFactory = (context) => ({
  inbound: {
    async execute(input, next) {
      const { info, cancellationSignal } = context;
      const reported = { latest: undefined as unknown };
      const life = info.heartbeatTimeoutMs
        ? setInterval(() => context.heartbeat(reported.latest), SIGN_OF_LIFE_MS)
        : undefined;
      const expiry = new AbortController();
      const expire = () =>
        expiry.abort(
          ApplicationFailure.create({ type: 'GivenUp', message: 'the attempt took longer than it may' }),
        );
      const timer = setTimeout(expire, info.startToCloseTimeoutMs + MARGIN_MS);
      const account = accountOf(input.headers);
      const givenUp = AbortSignal.any([cancellationSignal, expiry.signal]);
      try {
        return await progress.run(reported, () =>
          untilAborted(givenUp, () =>
            account === undefined
              ? asService('attempts', () => next(input))
              : asAccount(account, () => next(input)),
          ),
        );
      } catch (error) {
        // Whatever it failed with, it is because of that.
        throw givenUp.aborted ? givenUp.reason : error;
      } finally {
        clearTimeout(timer);
        clearInterval(life);
      }
    },
  },
});

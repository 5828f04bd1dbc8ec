import type { ActivityOptions, LocalActivityOptions } from '@temporalio/workflow';

/** Before the first answer: local activities, so that it takes one workflow task. */
export const AT_ONCE: LocalActivityOptions = {
  startToCloseTimeout: '10s',
  retry: { initialInterval: '200ms', maximumInterval: '5s' },
};
export const AT_ONCE_WITH_NETWORK: LocalActivityOptions = {
  startToCloseTimeout: '6s',
  scheduleToCloseTimeout: '7s',
  retry: { initialInterval: '200ms', maximumAttempts: 6 },
};

/**
 * The network's two calls take at most 5 s each. A worker that died or froze is noticed by its silence: every attempt
 * gives signs of life (temporal/attempts.ts), by which it also hears that it was given up.
 */
export const LATER: ActivityOptions = {
  startToCloseTimeout: '15s',
  heartbeatTimeout: '6s',
  retry: { initialInterval: '1s', maximumInterval: '1m' },
};
export const LATER_WITH_NETWORK: ActivityOptions = {
  startToCloseTimeout: '15s',
  heartbeatTimeout: '6s',
  retry: { maximumAttempts: 1 },
};

import type { ActivityOptions, LocalActivityOptions } from '@temporalio/workflow';

/** A step that only takes the database, as a local activity: it is part of the workflow task, and retried for ever. */
export const LOCAL_STEP: LocalActivityOptions = {
  startToCloseTimeout: '10s',
  retry: { initialInterval: '200ms', maximumInterval: '5s' },
};

/** The first call of the card network, as a local activity, so that the first answer takes one workflow task. */
export const LOCAL_NETWORK_CALL: LocalActivityOptions = {
  startToCloseTimeout: '8s',
  scheduleToCloseTimeout: '10s',
  retry: { initialInterval: '200ms', maximumAttempts: 6 },
};

/**
 * The network's two calls take at most 5 s each. A worker that died or froze is noticed by its silence: every attempt
 * gives signs of life (temporal/attempts.ts), by which it also hears that it was given up.
 */
const ALIVE = { startToCloseTimeout: '20s', heartbeatTimeout: '6s' } as const;

/** One call of the card network: if it gives no answer, the workflow decides when to ask again. */
export const NETWORK_CALL: ActivityOptions = { ...ALIVE, retry: { maximumAttempts: 1 } };

/** The same, but if it is the database that fails, it is retried for ever, without growing the history. */
export const NETWORK_REQUEST: ActivityOptions = {
  ...ALIVE,
  retry: {
    initialInterval: '1s',
    maximumInterval: '15s',
    nonRetryableErrorTypes: ['CardNetworkUnavailable', 'NoCardNetwork'],
  },
};

/** With the line that the Temporal UI shows for the activity. It comes with its command, and so costs no event. */
export const summarized = <Options extends ActivityOptions | LocalActivityOptions>(
  options: Options,
  summary: string,
): Options => ({ ...options, summary });

export const RETRIED_FOR_EVER: ActivityOptions = {
  ...ALIVE,
  retry: { initialInterval: '1s', maximumInterval: '1m' },
};

import type { ActivityOptions, LocalActivityOptions } from '@temporalio/workflow';

/**
 * A step that only uses the database. As a local activity, it is part of the workflow task. It is retried
 * indefinitely, which a local activity has to name as a time. The worker ends each attempt
 * (platform/temporal/attempts.ts).
 */
export const LOCAL_STEP: LocalActivityOptions = {
  scheduleToCloseTimeout: '10 years',
  retry: { initialInterval: '200ms', maximumInterval: '5s' },
};

/**
 * The first call to the card network. It is a local activity, so that the first response takes only one
 * workflow task.
 */
export const LOCAL_NETWORK_CALL: LocalActivityOptions = {
  scheduleToCloseTimeout: '10s',
  retry: { initialInterval: '200ms', maximumAttempts: 6 },
};

/**
 * An issuance takes up to three requests and its look-up two, each with up to 4 s for its turn and 5 s for its
 * answer. A worker that died or froze stops sending heartbeats (platform/temporal/attempts.ts). Through its
 * heartbeats, an attempt also learns that it was given up.
 */
const ALIVE = { startToCloseTimeout: '1m', heartbeatTimeout: '6s' } as const;

/** One call to the card network. If it gets no answer, the workflow decides when to ask again. */
export const NETWORK_CALL: ActivityOptions = { ...ALIVE, retry: { maximumAttempts: 1 } };

/**
 * The same, but failures of the database are retried without growing the history. After an hour the workflow
 * goes on as if the network had not answered, so that no failure keeps it from its deadline or from an
 * operator's decision.
 */
export const NETWORK_REQUEST: ActivityOptions = {
  ...ALIVE,
  scheduleToCloseTimeout: '1h',
  retry: {
    initialInterval: '1s',
    maximumInterval: '15s',
    nonRetryableErrorTypes: ['CardNetworkUnavailable', 'NoCardNetwork'],
  },
};

/**
 * Adds the line that the Temporal UI shows for the activity. It is part of the command, so it costs no event.
 */
export const summarized = <Options extends ActivityOptions | LocalActivityOptions>(
  options: Options,
  summary: string,
): Options => ({ ...options, summary });

export const RETRIED_FOR_EVER: ActivityOptions = {
  ...ALIVE,
  retry: { initialInterval: '1s', maximumInterval: '1m' },
};

import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import {
  type CardActivities,
  type CardActivityDependencies,
  createCardActivities,
} from '../../activities/card-activities.ts';
import { createAnswerAnnouncer } from '../../commands/idempotency/announce-answer.ts';
import { describeError } from '../../domain/describe-error.ts';
import { type Repetition, repeat } from '../../process/repeat.ts';
import type { ClaimedWorkflow } from '../../temporal/claimed-workflow.ts';
import type { EagerWorker } from '../../temporal/eager-worker.ts';
import { type Started, startClaimed } from '../../temporal/start-claimed.ts';
import type { AnswerHints } from './answer-hints.ts';

const START_TIMEOUT_MS = 3_000;
/** A start that takes longer goes by the other connection as well, which says within a second where Temporal is away. */
const PATIENCE_MS = 1_000;
const PAUSE_MS = 5_000;

/** Starts a worker of this process, with these activities. */
export type HostWorker = (activities: CardActivities) => Promise<EagerWorker>;

export interface LiveWork {
  /**
   * Starts the work of a claim, or joins it.
   * @throws ServiceError where Temporal can't be reached.
   */
  start(workflow: ClaimedWorkflow): Promise<Started>;
  /** Has a worker in this process from now on; one that ends, or can't be started, is started again. */
  host(hostWorker: HostWorker): void;
  /** Ends the tasks that this process has. */
  stop(): Promise<void>;
}

export interface LiveWorkOptions extends Omit<CardActivityDependencies, 'answered' | 'opened'> {
  client: Client;
  answerHints: AnswerHints;
  eventsWritten(): void;
  logger: Logger;
}

/**
 * Starts the workflows of live mode. As soon as the worker that this process hosts is there, their first tasks come back
 * to it with the start; before, and while it is away, they go by the queue to the worker processes.
 */
export function openLiveWork(options: LiveWorkOptions): LiveWork {
  const { client, answerHints, eventsWritten, logger } = options;
  const announce = createAnswerAnnouncer(options.orm, (claimId, error) =>
    logger.warn(
      { claimId, error: describeError(error) },
      'could not notify the listeners that a claim has its answer',
    ),
  );
  const activities = createCardActivities({
    ...options,
    opened: answerHints.tellOpened,
    answered(claimId) {
      if (answerHints.tellAnswered(claimId)) eventsWritten();
      else announce(claimId);
    },
  });
  let hosted: EagerWorker | null = null;
  let hosting: Repetition | null = null;

  return {
    async start(workflow) {
      if (hosted !== null) {
        const eager = startClaimed(hosted.client, workflow, true).catch(() => null);
        const started = await Promise.race([eager, sleep(PATIENCE_MS, null, { ref: false })]);
        if (started !== null) return started;
      }
      return client.withDeadline(Date.now() + START_TIMEOUT_MS, () => startClaimed(client, workflow));
    },
    host(hostWorker) {
      hosting = repeat('the worker hosted by the API', PAUSE_MS, logger, async (stopping) => {
        const worker = await hostWorker(activities);
        // Why it ended says `ended`.
        const stop = () => void worker.stop().catch(() => {});
        stopping.addEventListener('abort', stop);
        if (stopping.aborted) stop();
        hosted = worker;
        try {
          await worker.ended;
        } finally {
          hosted = null;
          stopping.removeEventListener('abort', stop);
        }
      });
    },
    async stop() {
      await hosting?.stop();
    },
  };
}

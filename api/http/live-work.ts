import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import { createResponseNotifier, type StoredResponse } from '../../commands/idempotency/response.ts';
import type { Orm } from '../../db/orm.ts';
import { describeError } from '../../process/describe-error.ts';
import { type Repetition, repeat } from '../../process/repeat.ts';
import type { ClaimedWorkflow } from '../../temporal/claimed-workflow.ts';
import type { EagerWorker } from '../../temporal/eager-worker.ts';
import { type Started, startClaimed } from '../../temporal/start-claimed.ts';
import type { AnswerHints } from './answer-hints.ts';

const START_TIMEOUT_MS = 3_000;
/** A start that takes longer goes through the other connection too, which reports within a second if Temporal is away. */
const PATIENCE_MS = 1_000;
const PAUSE_MS = 5_000;

export interface LiveWork {
  /**
   * Starts the work of a claim, or joins it.
   * @throws ServiceError if Temporal can't be reached.
   */
  start(workflow: ClaimedWorkflow): Promise<Started>;
  /** What the activities of this process report of a claim's progress. */
  reported: {
    /** The first step is made, and the network is asked next. */
    opened(claimId: string): void;
    answered(claimId: string, response: StoredResponse | null): void;
  };
  /** Has a worker in this process from now on; one that ends, or can't be started, is started again. */
  host(startWorker: () => Promise<EagerWorker>): void;
  /** Ends the tasks that this process has. */
  stop(): Promise<void>;
}

export interface LiveWorkOptions {
  orm: Orm;
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
  const { orm, client, answerHints, eventsWritten, logger } = options;
  const announce = createResponseNotifier(orm, (claimId, error) =>
    logger.warn(
      { claimId, error: describeError(error) },
      'could not notify the listeners that a claim has its answer',
    ),
  );
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
    reported: {
      opened: answerHints.tellOpened,
      answered(claimId, response) {
        if (answerHints.tellAnswered(claimId, response)) eventsWritten();
        else announce(claimId);
      },
    },
    host(startWorker) {
      hosting = repeat('the worker hosted by the API', PAUSE_MS, logger, async (stopping) => {
        const worker = await startWorker();
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

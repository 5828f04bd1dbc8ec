import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import {
  createResponseNotifier,
  type ResponseNotice,
  readResponseNotice,
  type StoredResponse,
} from '../../commands/idempotency/response.ts';
import { CLAIM_ANSWERED, listen } from '../../db/notifications.ts';
import type { Orm, ServiceDatabase } from '../../db/orm.ts';
import { describeError } from '../../process/describe-error.ts';
import { type Repetition, repeat } from '../../process/repeat.ts';
import { type ClaimedWorkflow, type Started, startClaimed } from '../../temporal/claimed-workflow.ts';
import type { EagerWorker } from '../../temporal/eager-worker.ts';

const START_TIMEOUT_MS = 3_000;
/** A start that takes longer is also sent over the other connection, which reports within a second if Temporal is down. */
const PATIENCE_MS = 1_000;
const PAUSE_MS = 5_000;

export interface LiveWork {
  /**
   * Starts the work of a claim, or joins it.
   * @throws ServiceError if Temporal can't be reached.
   */
  start(workflow: ClaimedWorkflow): Promise<Started>;
  /** What activities in this process report about a claim's progress. */
  reported: {
    /** The first step is committed; the next one asks the network. */
    opened(claimId: string): void;
    answered(claimId: string, response: StoredResponse | null): void;
  };
  /** Runs a worker in this process. If it can't be started, or ends, it is started again. */
  host(startWorker: () => Promise<EagerWorker>): void;
  /** Finishes the tasks of this process and stops its worker. */
  stop(): Promise<void>;
}

interface LiveWorkOptions {
  orm: Orm;
  client: Client;
  answerHints: AnswerHints;
  eventsWritten(): void;
  logger: Logger;
}

/**
 * Starts the workflows of live mode. While the worker hosted by this process is running, it gets each workflow's first task
 * in the response to the start; otherwise, first tasks go through the task queue to the worker processes.
 */
export function openLiveWork(options: LiveWorkOptions): LiveWork {
  const { orm, client, answerHints, eventsWritten, logger } = options;
  const notify = createResponseNotifier(orm, (claimId, error) =>
    logger.warn(
      { claimId, error: describeError(error) },
      'could not notify the listeners that a claim has its response',
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
        else notify(claimId);
      },
    },
    host(startWorker) {
      hosting = repeat('the worker hosted by the API', PAUSE_MS, logger, async (stopping) => {
        const worker = await startWorker();
        // `ended` rejects with the reason.
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

/** What a request learns about its claim while it waits. */
interface Hearing {
  /** Settles when the claim has its answer, whichever process gave it. */
  answered: Promise<ResponseNotice>;
  /** Resolves when this process has committed the operation's first step. */
  opened: Promise<void>;
}

/** Learns how claims progress: directly from this process, and by NOTIFY from others. A notification can be lost. */
export interface AnswerHints {
  /** Listens until `wait` is over. */
  hear<T>(claimId: string, wait: (hearing: Hearing) => Promise<T>): Promise<T>;
  /**
   * Reports that this process has answered a claim.
   * @param response the stored response; null if the request has to read it
   * @returns whether a request in this process is waiting for it
   */
  tellAnswered(claimId: string, response: StoredResponse | null): boolean;
  tellOpened(claimId: string): void;
  stop(): Promise<void>;
}

/**
 * One connection for all requests of the process.
 * @param database null in a process that serves no request that waits: it opens no connection
 */
export function openAnswerHints(database: ServiceDatabase['direct'] | null, logger: Logger): AnswerHints {
  const waiting = new Map<string, { answered(hint: ResponseNotice): void; opened(): void }>();
  const on = {
    [CLAIM_ANSWERED]: (payload: string) => {
      const hint = readResponseNotice(payload);
      waiting.get(hint.claimId)?.answered(hint);
    },
  };
  const listening = database && listen({ database, logger, on });
  return {
    async hear(claimId, wait) {
      const answered = Promise.withResolvers<ResponseNotice>();
      const opened = Promise.withResolvers<void>();
      waiting.set(claimId, { answered: answered.resolve, opened: opened.resolve });
      try {
        return await wait({ answered: answered.promise, opened: opened.promise });
      } finally {
        waiting.delete(claimId);
      }
    },
    tellAnswered(claimId, response) {
      waiting.get(claimId)?.answered({ claimId, open: () => response });
      return waiting.has(claimId);
    },
    tellOpened: (claimId) => waiting.get(claimId)?.opened(),
    stop: async () => listening?.stop(),
  };
}

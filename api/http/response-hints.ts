import type { Logger } from 'pino';
import { CLAIM_HAS_RESPONSE, listenToNotifications } from '../../platform/db/notifications.ts';
import type { ServiceDatabase } from '../../platform/db/orm.ts';
import { describeError } from '../../platform/process/describe-error.ts';
import { asAccount } from '../../platform/process/work-context.ts';
import type { ClaimedWorkflow } from '../../requests/claimed-workflow.ts';
import type { CommandContext } from '../../requests/command-context.ts';
import { readClaimResponse, type StoredResponse } from '../../requests/response.ts';
import { createResponseNotifier } from '../../requests/response-notice.ts';

/** What a request learns about its claim while it waits. */
interface Hearing {
  /** Settles when the claim has its response, whichever process stored it. */
  answered: Promise<StoredResponse>;
  /** Resolves when this process has committed the operation's first step. */
  opened: Promise<void>;
}

/**
 * Learns how claims progress: directly from this process, and by NOTIFY from others. A notification can be
 * lost.
 */
export interface ResponseHints {
  /** Listens until `wait` is over. */
  hear<T>(workflow: ClaimedWorkflow, wait: (hearing: Hearing) => Promise<T>): Promise<T>;
  /** What activities in this process report. */
  reported: {
    /** The first step is committed; the next one asks the network. */
    opened(claimId: string): void;
    /** @param response the stored response; null if the request has to read it */
    answered(claimId: string, response: StoredResponse | null): void;
  };
  stop(): Promise<void>;
}

interface HintsOptions extends CommandContext {
  /** Null in a process that serves no request that waits: it opens no connection. */
  direct: ServiceDatabase['direct'] | null;
  eventsWritten(): void;
  /** What else to do with notifications, by channel. */
  on: Record<string, (payload: string) => void>;
  logger: Logger;
}

interface Waiting {
  answered(response: StoredResponse): void;
  opened(): void;
  /** Reads the response, which may be there or not. */
  look(): void;
}

/** One connection for all requests of the process. */
export function openResponseHints(options: HintsOptions): ResponseHints {
  const { orm, ring, direct, eventsWritten, logger } = options;
  const waiting = new Map<string, Waiting>();
  const listening =
    direct &&
    listenToNotifications({
      database: direct,
      logger,
      on: { ...options.on, [CLAIM_HAS_RESPONSE]: (claimId) => waiting.get(claimId)?.look() },
      // Nobody heard what happened while there was no connection.
      onListening: () => {
        for (const { look } of waiting.values()) look();
      },
    });
  const notifyOthers = createResponseNotifier(orm, logger);
  return {
    async hear(workflow, wait) {
      const { claimId } = workflow;
      const answered = Promise.withResolvers<StoredResponse>();
      const opened = Promise.withResolvers<void>();
      const look = async () => {
        try {
          const response = await asAccount(workflow, () => readClaimResponse({ orm, ring }, claimId));
          if (response !== null) answered.resolve(response);
        } catch (error) {
          logger.warn({ claimId, error: describeError(error) }, "could not read a claim's response");
        }
      };
      waiting.set(claimId, { answered: answered.resolve, opened: opened.resolve, look: () => void look() });
      try {
        return await wait({ answered: answered.promise, opened: opened.promise });
      } finally {
        waiting.delete(claimId);
      }
    },
    reported: {
      opened: (claimId) => waiting.get(claimId)?.opened(),
      answered(claimId, response) {
        const request = waiting.get(claimId);
        if (request === undefined) return notifyOthers(claimId);
        if (response === null) request.look();
        else request.answered(response);
        eventsWritten();
      },
    },
    stop: async () => listening?.stop(),
  };
}

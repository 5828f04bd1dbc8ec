import type { Logger } from 'pino';
import { CLAIM_HAS_RESPONSE, listenToNotifications } from '../../platform/db/notifications.ts';
import type { Orm, ServiceDatabase } from '../../platform/db/orm.ts';
import type { StoredResponse } from '../../requests/response.ts';
import {
  createResponseNotifier,
  type ResponseNotice,
  readResponseNotice,
} from '../../requests/response-notice.ts';

/** What a request learns about its claim while it waits. */
interface Hearing {
  /** Settles when the claim has its answer, whichever process gave it. */
  answered: Promise<ResponseNotice>;
  /** Resolves when this process has committed the operation's first step. */
  opened: Promise<void>;
}

/** Learns how claims progress: directly from this process, and by NOTIFY from others. A notification can be lost. */
export interface ResponseHints {
  /** Listens until `wait` is over. */
  hear<T>(claimId: string, wait: (hearing: Hearing) => Promise<T>): Promise<T>;
  /** What activities in this process report. */
  reported: {
    /** The first step is committed; the next one asks the network. */
    opened(claimId: string): void;
    /** @param response the stored response; null if the request has to read it */
    answered(claimId: string, response: StoredResponse | null): void;
  };
  stop(): Promise<void>;
}

interface AnswerHintsOptions {
  orm: Orm;
  /** Null in a process that serves no request that waits: it opens no connection. */
  direct: ServiceDatabase['direct'] | null;
  eventsWritten(): void;
  /** What else to do with notifications, by channel. */
  on: Record<string, (payload: string) => void>;
  logger: Logger;
}

/** One connection for all requests of the process. */
export function openResponseHints(options: AnswerHintsOptions): ResponseHints {
  const { orm, direct, eventsWritten, logger } = options;
  const waiting = new Map<string, { answered(notice: ResponseNotice): void; opened(): void }>();
  const on = {
    ...options.on,
    [CLAIM_HAS_RESPONSE]: (payload: string) => {
      const notice = readResponseNotice(payload);
      waiting.get(notice.claimId)?.answered(notice);
    },
  };
  const listening = direct && listenToNotifications({ database: direct, logger, on });
  const notifyOthers = createResponseNotifier(orm, logger);
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
    reported: {
      opened: (claimId) => waiting.get(claimId)?.opened(),
      answered(claimId, response) {
        const request = waiting.get(claimId);
        if (request === undefined) return notifyOthers(claimId);
        request.answered({ claimId, open: () => response });
        eventsWritten();
      },
    },
    stop: async () => listening?.stop(),
  };
}

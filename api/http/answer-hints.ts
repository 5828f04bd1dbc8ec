import type { Logger } from 'pino';
import {
  type ResponseNotice,
  readResponseNotice,
  type StoredResponse,
} from '../../commands/idempotency/response.ts';
import { CLAIM_ANSWERED, listen } from '../../db/notifications.ts';
import type { ServiceDatabase } from '../../db/orm.ts';

/** What a request hears of its claim while it waits. */
export interface Hearing {
  /** Settles when the claim has its answer, whichever process gave it. */
  answered: Promise<ResponseNotice>;
  /** Settles when this process has made the operation's first step. */
  opened: Promise<void>;
}

/** Hears how the operations of claims get on: in this process at once, from others by NOTIFY. A hint can get lost. */
export interface AnswerHints {
  /** @param wait is over when it does not listen any more */
  hear<T>(claimId: string, wait: (hearing: Hearing) => Promise<T>): Promise<T>;
  /**
   * Tells that this process has answered a claim.
   * @param response what it has stored; null: the request has to read it
   * @returns whether a request in this process waits for it
   */
  tellAnswered(claimId: string, response: StoredResponse | null): boolean;
  tellOpened(claimId: string): void;
  stop(): Promise<void>;
}

/** One connection for all requests of the process. */
export function openAnswerHints(database: ServiceDatabase['direct'], logger: Logger): AnswerHints {
  const waiting = new Map<string, { answered(hint: ResponseNotice): void; opened(): void }>();
  const listening = listen({
    database,
    logger,
    on: {
      [CLAIM_ANSWERED]: (payload) => {
        const hint = readResponseNotice(payload);
        waiting.get(hint.claimId)?.answered(hint);
      },
    },
  });
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
    stop: () => listening.stop(),
  };
}

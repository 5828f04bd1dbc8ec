import type { Logger } from 'pino';
import { type AnswerHint, readAnswerHint } from '../commands/announce-answer.ts';
import { CLAIM_ANSWERED } from '../db/channels.ts';
import { listen } from '../db/listen.ts';
import type { ServiceDatabase } from '../db/service-database.ts';

/** Hears that claims have answers, sooner than their workflows' updates tell. */
export interface AnswerHints {
  /** Settles with what `answered` comes to, or when a hint about the claim comes, whichever is first. */
  sooner<T>(claimId: string, answered: Promise<T>): Promise<T | AnswerHint>;
  stop(): Promise<void>;
}

/** One connection for all requests of the process. */
export function openAnswerHints(database: ServiceDatabase['direct'], logger: Logger): AnswerHints {
  const waiting = new Map<string, (hint: AnswerHint) => void>();
  const hear = (hint: AnswerHint) => waiting.get(hint.claimId)?.(hint);
  const listening = listen({
    database,
    logger,
    on: { [CLAIM_ANSWERED]: (payload) => hear(readAnswerHint(payload)) },
  });
  return {
    async sooner(claimId, answered) {
      const hint = new Promise<AnswerHint>((resolve) => waiting.set(claimId, resolve));
      try {
        return await Promise.race([answered, hint]);
      } finally {
        waiting.delete(claimId);
      }
    },
    stop: () => listening.stop(),
  };
}

import type { Logger } from 'pino';
import { CLAIM_ANSWERED } from '../db/channels.ts';
import { listen } from '../db/listen.ts';

/** Hears that claims have answers, sooner than their workflows' updates tell. */
export interface AnswerHints {
  /** Settles with what `answered` comes to, or when a hint about the claim comes, whichever is first. */
  sooner<T>(claimId: string, answered: Promise<T>): Promise<T | 'hint'>;
  stop(): Promise<void>;
}

/** One connection for all requests of the process. */
export function openAnswerHints(databaseUrl: string, logger: Logger): AnswerHints {
  const waiting = new Map<string, () => void>();
  const listening = listen({
    databaseUrl,
    logger,
    on: { [CLAIM_ANSWERED]: (claimId) => waiting.get(claimId)?.() },
  });
  return {
    async sooner(claimId, answered) {
      const hint = new Promise<'hint'>((resolve) => waiting.set(claimId, () => resolve('hint')));
      try {
        return await Promise.race([answered, hint]);
      } finally {
        waiting.delete(claimId);
      }
    },
    stop: () => listening.stop(),
  };
}

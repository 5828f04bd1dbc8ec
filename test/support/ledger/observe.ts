import type { LedgerResult, PostingOutcome } from '../../../ledger/apply-posting.ts';
import { LedgerConflict, LedgerRejected } from '../../../ledger/ledger-error.ts';
import type { Posting } from '../../../ledger/posting.ts';
import type { Answer } from './model.ts';

/** An operation, what a client was told, and when it asked and heard, on a clock that ticks at every such moment. */
export interface Observation {
  posting: Posting;
  answer: Answer;
  askedAt: number;
  heardAt: number;
}

/** The typed errors as data, as the model has them. */
export function answerOf(answer: PostingOutcome): Answer {
  if (answer instanceof LedgerConflict) return { outcome: 'conflict' };
  if (answer instanceof LedgerRejected) return { outcome: 'rejected', reason: answer.reason };
  return answer;
}

export async function attempt(apply: () => Promise<LedgerResult>): Promise<Answer> {
  try {
    return await apply();
  } catch (error) {
    if (error instanceof LedgerConflict || error instanceof LedgerRejected) return answerOf(error);
    throw error;
  }
}

export class Recorder {
  readonly observations: Observation[] = [];
  #now = 0;

  /** Work may answer several operations that were asked together. */
  async record(postings: Posting[], work: () => Promise<Answer[]>): Promise<void> {
    const askedAt = this.#now++;
    const answers = await work();
    const heardAt = this.#now++;
    for (const [index, posting] of postings.entries()) {
      this.observations.push({ posting, answer: answers[index] as Answer, askedAt, heardAt });
    }
  }
}

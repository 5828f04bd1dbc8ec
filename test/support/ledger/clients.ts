import { applyPosting } from '../../../ledger/apply-posting.ts';
import type { Posting } from '../../../ledger/posting.ts';
import { isRetryable } from '../../../platform/db/is-retryable.ts';
import type { Orm } from '../../../platform/db/orm.ts';
import type { Answer } from './model.ts';
import { attempt, type Recorder } from './observe.ts';
import { forkOf } from './open-ledger.ts';

/** `together`: two in one transaction of the caller's. `undone`: so too, but rolled back in the end. */
export const WAYS = ['alone', 'together', 'undone'] as const;
type Way = (typeof WAYS)[number];

class ChangedItsMind extends Error {}

interface Clients {
  /** Takes operations off the line until there are none, each turn in the next of the ways. */
  work(line: Posting[], ways: readonly Way[], recorder: Recorder): Promise<void>;
}

/**
 * Clients of one ledger. Whatever tells them that nothing is known of what became of their work makes them bring the
 * same operations again.
 * @param isLost which errors say so, beside those isRetryable knows; it resolves once it makes sense to ask again
 */
export function createClients(
  orm: Orm,
  isLost: (error: unknown) => Promise<boolean> = async () => false,
): Clients {
  const em = forkOf(orm);

  async function untilTold<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (!isRetryable(error) && !(await isLost(error))) throw error;
      }
    }
  }

  const inTransaction = (postings: Posting[], end: () => void) =>
    forkOf(orm).transactional(async (tx) => {
      const answers: Answer[] = [];
      for (const posting of postings) answers.push(await attempt(() => applyPosting(tx, posting)));
      end();
      return answers;
    });

  async function undo(postings: Posting[]): Promise<void> {
    try {
      await inTransaction(postings, () => {
        throw new ChangedItsMind();
      });
    } catch (error) {
      if (error instanceof ChangedItsMind || isRetryable(error)) return;
      if (!(await isLost(error))) throw error;
    }
  }

  return {
    async work(line, ways, recorder) {
      for (let turn = 0; line.length > 0; turn++) {
        const way = ways[turn % ways.length] as Way;
        const postings = line.splice(0, way === 'together' || way === 'undone' ? 2 : 1);
        const [posting] = postings as [Posting];
        if (way === 'undone') await undo(postings);
        else {
          await recorder.record(postings, () =>
            untilTold(async () => {
              if (way === 'together') return inTransaction(postings, () => {});
              return [await attempt(() => applyPosting(em, posting))];
            }),
          );
        }
      }
    },
  };
}

import type { Logger } from 'pino';
import { type Attempt, recordAttempts } from '../../commands/webhooks/record-attempts.ts';
import type { Orm } from '../../db/orm.ts';
import { describeError } from '../../domain/describe-error.ts';

const MOST_AT_ONCE = 500;

/**
 * Records attempts, in batches where several end together: one statement is under way, and what ends meanwhile waits
 * for the next.
 */
export class Outcomes {
  #waiting: { attempt: Attempt; done: () => void }[] = [];
  #serving: Promise<void> | undefined;
  readonly #orm: Orm;
  readonly #logger: Logger;

  constructor(orm: Orm, logger: Logger) {
    this.#orm = orm;
    this.#logger = logger;
  }

  /** Settles when it is recorded, or could not be: then the event's lease ends and it is sent again. */
  record(attempt: Attempt): Promise<void> {
    return new Promise((done) => {
      this.#waiting.push({ attempt, done });
      this.#serving ??= this.#serve();
    });
  }

  async #serve(): Promise<void> {
    while (this.#waiting.length > 0) {
      // Lets those in that end in the same turn.
      await new Promise(setImmediate);
      const batch = this.#waiting.splice(0, MOST_AT_ONCE);
      try {
        await recordAttempts(
          this.#orm.em.fork(),
          batch.map(({ attempt }) => attempt),
        );
      } catch (error) {
        this.#logger.error(
          { events: batch.length, error: describeError(error) },
          'could not record webhook attempts; the events are sent again when their leases expire',
        );
      }
      for (const { done } of batch) done();
    }
    this.#serving = undefined;
  }
}

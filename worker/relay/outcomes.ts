import type { Logger } from 'pino';
import { type Attempt, recordAttempts } from '../../commands/webhooks/record-attempts.ts';
import type { Orm } from '../../db/orm.ts';
import { describeError } from '../../domain/describe-error.ts';
import { coalesce } from '../../process/coalesce.ts';

const MOST_AT_ONCE = 500;

/**
 * Records attempts, in batches where several end together: one statement is under way, and what ends meanwhile waits
 * for the next.
 */
export class Outcomes {
  /** Settles when it is recorded, or could not be: then the event's lease ends and it is sent again. */
  readonly record: (attempt: Attempt) => Promise<void>;

  constructor(orm: Orm, logger: Logger) {
    this.record = coalesce({
      mostTogether: MOST_AT_ONCE,
      async run(attempts) {
        try {
          await recordAttempts(orm.em.fork(), [...attempts]);
        } catch (error) {
          logger.error(
            { events: attempts.length, error: describeError(error) },
            'could not record webhook attempts; the events are sent again when their leases expire',
          );
        }
        return attempts.map(() => undefined);
      },
    });
  }
}

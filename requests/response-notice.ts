import { sql } from 'kysely';
import type { Logger } from 'pino';
import { CLAIM_HAS_RESPONSE, EVENT_WRITTEN } from '../platform/db/notifications.ts';
import type { Orm } from '../platform/db/orm.ts';
import { readStatement } from '../platform/db/sql.ts';
import { describeError } from '../platform/process/describe-error.ts';

/**
 * Notifies the process that waits for a claim's response, before Temporal has recorded the workflow task that
 * produced it, and notifies the relays if there is an event to send. It is a separate statement after the
 * commit, because NOTIFY inside a transaction makes commits wait for each other.
 */
export const notifyResponse = readStatement(
  (_, { claimId }: { claimId: string }) => sql`
    SELECT pg_notify(${sql.lit(CLAIM_HAS_RESPONSE)}, ${claimId}),
      CASE WHEN EXISTS (SELECT FROM delivery WHERE status = 'pending') THEN pg_notify(${sql.lit(EVENT_WRITTEN)}, '') END`,
  { acrossTenants: 'queue' },
);

/** {@link notifyResponse} for callers that do not wait. A lost notification is logged. */
export function createResponseNotifier(orm: Orm, logger: Logger): (claimId: string) => void {
  return (claimId) => {
    notifyResponse(orm.em.fork(), { claimId }).catch((error: unknown) =>
      logger.warn(
        { claimId, error: describeError(error) },
        'could not notify the listeners that a claim has its response',
      ),
    );
  };
}

import type { EntityManager } from '@mikro-orm/postgresql';
import type { Orm } from '../../db/orm.ts';
import { query } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import { type Operator, recordAudit } from '../accounts/operator-context.ts';

/** Rows of a sweep: short enough not to keep anybody waiting. */
const BATCH = 500;
/** How late a workflow may be before its event goes on without it. */
const WORKFLOW_GRACE = '2 minutes';

/**
 * Has events sent again whatever came of them: at once, and with the whole schedule before them. The relay makes the
 * attempts, within the limits of their endpoints. What it is about to send anyway stays as it is.
 */
export async function requeueEvents(em: EntityManager, eventIds: readonly string[]): Promise<void> {
  await query(
    em,
    `UPDATE delivery SET status = 'pending', schedule_attempts = 0, lease_expires_at = '-infinity',
       next_attempt_at = clock_timestamp()
     WHERE event_id = ANY ($1) AND status <> 'pending'`,
    [eventIds],
  );
}

/**
 * {@link requeueEvents} for an operator, recorded. Of many, an account's, the record comes first and they follow in parts.
 * @param subject the event, or the account whose events they are
 */
export function requeueByOperator(
  { orm, actor }: Operator,
  subject: string,
  eventIds: readonly string[],
  detail: Record<string, unknown>,
): Promise<void> {
  return transaction(orm, async (tx) => {
    recordAudit(tx, actor, 'webhook.requeue', subject, detail);
    await requeueEvents(tx, eventIds);
  });
}

/** {@link requeueEvents} for a workflow, which is then told what comes of it. @returns whether there is such an event */
export function requeueByWorkflow(orm: Orm, eventId: string): Promise<boolean> {
  return transaction(orm, async (tx) => {
    await requeueEvents(tx, [eventId]);
    const told = `UPDATE delivery SET workflow = 'told' WHERE event_id = $1 RETURNING event_id`;
    return (await query(tx, told, [eventId])).length > 0;
  });
}

/**
 * Hands the relay an event whose next attempt is due by its workflow. One that has gone on without the workflow stays as
 * it is, and the workflow is told how it stands.
 * @param attemptCount how many attempts the workflow has heard of; null: it is of a release that did not count
 * @returns whether there is such an event; old ones are pruned
 */
export async function handOverRetry(
  orm: Orm,
  eventId: string,
  attemptCount: number | null,
): Promise<boolean> {
  const found = await query(orm.em.fork(), HAND_OVER, [eventId, attemptCount]);
  return found.length > 0;
}

// What is pending tells its workflow anyway, when it has been sent.
const HAND_OVER = `
  UPDATE delivery d SET
    status = CASE WHEN is_due THEN 'pending' ELSE status END,
    schedule_attempts = CASE WHEN is_due AND status = 'given_up' THEN 0 ELSE schedule_attempts END,
    lease_expires_at = CASE WHEN status = 'pending' THEN lease_expires_at ELSE '-infinity' END,
    workflow = CASE WHEN is_due OR status = 'pending' THEN 'told' ELSE 'untold' END
  FROM (
    SELECT event_id, ($2::int IS NULL AND status = 'given_up')
      OR (status = 'retrying' AND attempt_count = coalesce($2, attempt_count)) AS is_due
    FROM delivery WHERE event_id = $1 FOR UPDATE
  ) known
  WHERE d.event_id = known.event_id
  RETURNING d.event_id`;

/**
 * Hands the relay what is due though no workflow has said so: at once where there is none yet (Temporal is away, or the
 * account has more of them to start than its turn), and after two minutes where the workflow is late or gone.
 * @returns how many
 */
export async function handOverOverdue(orm: Orm): Promise<number> {
  for (let total = 0; ; ) {
    const handedOver = await query(orm.em.fork(), HAND_OVER_OVERDUE, [BATCH]);
    total += handedOver.length;
    if (handedOver.length < BATCH) return total;
  }
}

const HAND_OVER_OVERDUE = `
  UPDATE delivery d SET status = 'pending', lease_expires_at = '-infinity'
  FROM (
    SELECT event_id FROM delivery
    WHERE status = 'retrying' AND next_attempt_at <= clock_timestamp()
      AND (workflow = 'untold' OR next_attempt_at <= clock_timestamp() - interval '${WORKFLOW_GRACE}')
    ORDER BY next_attempt_at LIMIT $1 FOR UPDATE SKIP LOCKED
  ) overdue
  WHERE d.event_id = overdue.event_id
  RETURNING d.event_id`;

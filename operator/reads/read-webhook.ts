import { openAnswerStart } from '../../commands/idempotency/answer-start.ts';
import { unknownId } from '../../commands/idempotency/refusal.ts';
import type { KeyRing } from '../../crypto/key-ring.ts';
import type { Orm } from '../../db/orm.ts';
import { query, readStatement } from '../../db/sql.ts';
import { presentAttempt } from '../../resources/event.ts';
import { deliverWebhookWorkflowId } from '../../workflows/messages.ts';
import { presentWebhook, WEBHOOK_COLUMNS, type WebhookResource, type WebhookRow } from './read-webhooks.ts';

/** An event with every attempt to send it, and where it goes now. */
export interface WebhookDetail extends WebhookResource {
  attempts: (ReturnType<typeof presentAttempt> & { answer_start: string | null })[];
  endpoint: { url: string; status: 'enabled' | 'disabled' } | null;
  workflow_id: string;
}

/** @param ring null where it is not known: what receivers answered is left out then. @throws Refusal where there is none. */
export async function readWebhook(orm: Orm, ring: KeyRing | null, eventId: string): Promise<WebhookDetail> {
  const em = orm.em.fork();
  const [row] = await query<WebhookRow & { url: string | null; endpoint_status: 'enabled' | 'disabled' }>(
    em,
    `SELECT ${WEBHOOK_COLUMNS}, w.url, w.status AS endpoint_status
     FROM delivery d JOIN event e ON e.id = d.event_id
       LEFT JOIN webhook_endpoint w ON w.partner_id = d.partner_id AND w.mode = d.mode
     WHERE d.event_id = $1`,
    [eventId],
  );
  if (row === undefined)
    throw unknownId('evt', eventId, 'run "operator webhook list"; events are kept for 30 days');
  const attempts = await attemptsOf(em, { eventId });
  const { url, endpoint_status: status } = row;
  return {
    ...presentWebhook(row),
    attempts: attempts.map((attempt) => ({
      ...presentAttempt(attempt),
      answer_start: ring && attempt.answer_start && openAnswerStart(ring, eventId, attempt.answer_start),
    })),
    endpoint: url === null ? null : { url, status },
    workflow_id: deliverWebhookWorkflowId(eventId),
  };
}

const attemptsOf = readStatement((db, { eventId }: { eventId: string }) =>
  db
    .selectFrom('delivery_attempt')
    .select(['number', 'delivered', 'http_status', 'started_at', 'duration_ms', 'error', 'answer_start'])
    .where('event_id', '=', eventId)
    .orderBy('number'),
);

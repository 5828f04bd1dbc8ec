import { openAnswerStart } from '../../commands/answer-start.ts';
import { unknownId } from '../../commands/refusal.ts';
import type { KeyRing } from '../../db/key-ring.ts';
import type { Orm } from '../../db/orm.ts';
import { query } from '../../db/sql.ts';
import { type AttemptRow, presentAttempt } from '../../domain/event-resource.ts';
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
  const attempts = await query<AttemptRow & { answer_start: Buffer | null }>(
    em,
    `SELECT number, delivered, http_status, started_at, duration_ms, error, answer_start
     FROM delivery_attempt WHERE event_id = $1 ORDER BY number`,
    [eventId],
  );
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

import { Refusal } from '../commands/idempotency/refusal.ts';
import { announceEvents } from '../commands/webhooks/announce-events.ts';
import { requeueByOperator } from '../commands/webhooks/requeue-events.ts';
import { readWebhook, type WebhookDetail } from './reads/read-webhook.ts';
import type { Session } from './session.ts';

/**
 * Has one event sent again, at once.
 * @returns how it stands then
 * @throws Refusal where there is no such event, or no enabled endpoint for it.
 */
export async function requeueWebhook(session: Session, eventId: string): Promise<WebhookDetail> {
  const orm = await session.orm();
  const event = await readWebhook(orm, session.keys(), eventId);
  if (event.endpoint?.status !== 'enabled') {
    const verb = event.endpoint === null ? 'set' : 'enable';
    throw new Refusal(
      `${eventId} has no enabled endpoint: run "operator webhook-endpoint ${verb} ${event.partner_id}` +
        `${verb === 'set' ? ' --url U' : ''} --mode ${event.mode}" first.`,
    );
  }
  if (event.status === 'pending') return event;
  await requeueByOperator(await session.operator(), eventId, [eventId], { status: event.status });
  await announceEvents(orm);
  return readWebhook(orm, session.keys(), eventId);
}

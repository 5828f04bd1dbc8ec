import { handToRelay } from '../commands/hand-to-relay.ts';
import { markRequeued } from '../commands/mark-requeued.ts';
import { recordRequeue } from '../commands/record-requeue.ts';
import { Refusal } from '../commands/refusal.ts';
import type { Orm } from '../db/orm.ts';
import { requeueEvent } from '../workflows/client/deliver-webhook.ts';
import { readWebhook, type WebhookDetail } from './reads/read-webhook.ts';
import type { WebhookResource } from './reads/read-webhooks.ts';
import type { Session } from './session.ts';

const TEMPORAL_TIMEOUT_MS = 5_000;

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
      `${eventId} has nowhere to go: run "operator webhook-endpoint ${verb} ${event.partner_id}` +
        `${verb === 'set' ? ' --url U' : ''} --mode ${event.mode}" first.`,
    );
  }
  if (event.status === 'pending') return event;
  await recordRequeue(await session.operator(), eventId, { status: event.status });
  await sendEventsAgain(session, orm, [event]);
  return readWebhook(orm, session.keys(), eventId);
}

/** What sending an event again takes to know of it. */
export type SentEvent = Pick<
  WebhookResource,
  'id' | 'partner_id' | 'mode' | 'type' | 'status' | 'attempt_count'
>;

/** Signals the workflows of what is given up or waits for its next attempt; the relay gets the rest. */
export async function sendEventsAgain(session: Session, orm: Orm, events: SentEvent[]): Promise<void> {
  const ofWorkflows = events.filter(({ status }) => status === 'given_up' || status === 'retrying');
  await Promise.all(ofWorkflows.map((event) => signal(session, orm, event)));
  const others = events.filter((event) => !ofWorkflows.includes(event));
  if (others.length > 0)
    await handToRelay(
      orm.em.fork(),
      others.map(({ id }) => id),
    );
}

async function signal(session: Session, orm: Orm, event: SentEvent): Promise<void> {
  const client = session.temporal();
  await client.withDeadline(Date.now() + TEMPORAL_TIMEOUT_MS, () =>
    requeueEvent(client, {
      eventId: event.id,
      type: event.type,
      partnerId: event.partner_id,
      mode: event.mode,
      taskQueue: session.webhooksTaskQueue,
      delaysMs: session.config.webhookDelaysMs,
    }),
  );
  await markRequeued(orm, { event_id: event.id, attempt_count: event.attempt_count });
}

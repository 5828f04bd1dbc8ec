import { markRequeued } from '../commands/mark-requeued.ts';
import { queueResend } from '../commands/queue-resend.ts';
import type { Tenant } from '../db/tenant.ts';
import { ApiError } from '../domain/api-error.ts';
import { isId } from '../domain/ids.ts';
import { requeueEvent } from '../workflows/client/deliver-webhook.ts';
import type { WebhookDependencies } from './webhook-dependencies.ts';

const TEMPORAL_TIMEOUT_MS = 5_000;

/**
 * Has an event sent again: by the relay, or by its workflow where it has one.
 * @throws ServiceError where that takes Temporal and it can't be reached; ApiError as queueResend
 */
export async function sendAgain(
  { orm, client, webhooksTaskQueue, webhookDelaysMs, eventsWritten }: WebhookDependencies,
  tenant: Tenant,
  eventId: string,
): Promise<void> {
  if (!isId('evt', eventId)) throw new ApiError('event_not_found');
  const { type, status, attempt_count } = await queueResend(orm, tenant, eventId);
  if (status !== 'given_up' && status !== 'retrying') return eventsWritten();
  const event = { ...tenant, eventId, type, taskQueue: webhooksTaskQueue, delaysMs: webhookDelaysMs };
  await client.withDeadline(Date.now() + TEMPORAL_TIMEOUT_MS, () => requeueEvent(client, event));
  await markRequeued(orm, { event_id: eventId, attempt_count });
}

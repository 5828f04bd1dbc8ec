import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { TypedSearchAttributes } from '@temporalio/common';
import type { EventType } from '../domain/event.ts';
import type { Mode } from '../domain/mode.ts';
import {
  DELIVER_WEBHOOK,
  type DeliverWebhookInput,
  type DeliveryProgress,
  deliverWebhookWorkflowId,
  progress,
} from '../workflows/messages.ts';
import {
  deliveryStatusAttribute,
  eventTypeAttribute,
  modeAttribute,
  partnerIdAttribute,
} from '../workflows/search-attributes.ts';

export interface EventToDeliver {
  eventId: string;
  type: EventType;
  partnerId: string;
  mode: Mode;
  taskQueue: string;
}

/**
 * Tells the workflow of an event how it stands. While there are attempts to come, or an operator's `requeue` may, it is
 * started where none runs. A signal comes along with the start: a workflow that is about to end has to hear it first, and
 * goes on.
 * @throws ServiceError where Temporal can't be reached.
 */
export async function tellWorkflow(
  client: Client,
  event: EventToDeliver,
  latest: DeliveryProgress,
): Promise<void> {
  const workflowId = deliverWebhookWorkflowId(event.eventId);
  if (latest.status === 'retrying' || latest.status === 'given_up') {
    const args: [DeliverWebhookInput] = [{ eventId: event.eventId }];
    const signalArgs: [DeliveryProgress] = [latest];
    await client.workflow.signalWithStart(DELIVER_WEBHOOK, {
      ...{ workflowId, taskQueue: event.taskQueue, workflowIdReusePolicy: 'ALLOW_DUPLICATE' },
      ...{ args, signal: progress, signalArgs },
      staticSummary: `Deliver ${event.type} (${event.mode})`,
      // Where tasks queue up in Temporal, partners take turns.
      priority: { fairnessKey: event.partnerId },
      typedSearchAttributes: new TypedSearchAttributes([
        { key: partnerIdAttribute, value: event.partnerId },
        { key: modeAttribute, value: event.mode },
        { key: eventTypeAttribute, value: event.type },
        { key: deliveryStatusAttribute, value: 'retrying' },
      ]),
    });
    return;
  }
  try {
    await client.workflow.getHandle(workflowId).signal(progress, latest);
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
}

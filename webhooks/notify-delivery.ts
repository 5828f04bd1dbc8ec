import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { TypedSearchAttributes } from '@temporalio/common';
import type { Tenant } from '../domain/mode.ts';
import {
  deliveryStatusAttribute,
  eventTypeAttribute,
  modeAttribute,
  partnerIdAttribute,
} from '../platform/temporal/search-attributes.ts';
import {
  DELIVER_WEBHOOK,
  type DeliverWebhookWorkflow,
  type DeliveryProgress,
  deliverWebhookWorkflowId,
  progress,
} from '../workflows/messages.ts';

interface EventToDeliver extends Tenant {
  eventId: string;
  endpointId: string;
  /** The event's, such as `card.issued`. */
  type: string;
  taskQueue: string;
}

/**
 * Tells a delivery's workflow the result of the latest attempt. If the workflow isn't running, this starts
 * it, unless the event was delivered or parked. The signal comes with the start, so that a workflow that is
 * about to end handles it and continues.
 * @throws ServiceError if Temporal can't be reached
 */
export async function notifyDelivery(
  client: Client,
  event: EventToDeliver,
  latest: DeliveryProgress,
): Promise<void> {
  const { eventId, endpointId } = event;
  const workflowId = deliverWebhookWorkflowId(eventId, endpointId);
  if (latest.status === 'retrying' || latest.status === 'given_up') {
    await client.workflow.signalWithStart<DeliverWebhookWorkflow, [DeliveryProgress]>(DELIVER_WEBHOOK, {
      workflowId,
      taskQueue: event.taskQueue,
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      args: [{ eventId, endpointId }],
      signal: progress,
      signalArgs: [latest],
      staticSummary: `Deliver ${event.type} (${event.mode})`,
      staticDetails: `Partner \`${event.partnerId}\`, endpoint \`${endpointId}\`. On the command line: \`npm run operator -- webhook show ${eventId} --endpoint ${endpointId}\`.`,
      // If tasks queue up in Temporal, partners take turns.
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

import type { Client } from '@temporalio/client';
import { TypedSearchAttributes } from '@temporalio/common';
import type { EventType } from '../../domain/event-type.ts';
import type { Mode } from '../../domain/mode.ts';
import { DELIVER_WEBHOOK, deliverWebhookWorkflowId, requeue } from '../messages.ts';
import {
  deliveryStatusAttribute,
  eventTypeAttribute,
  modeAttribute,
  partnerIdAttribute,
} from '../search-attributes.ts';

export interface EventToDeliver {
  eventId: string;
  type: EventType;
  partnerId: string;
  mode: Mode;
  taskQueue: string;
  /** How long to wait after each failed attempt. */
  delaysMs: number[];
}

/** Starts the retries of an event whose first attempt failed; those under way go on. */
export async function startRetries(client: Client, event: EventToDeliver): Promise<void> {
  await client.workflow.start(DELIVER_WEBHOOK, { ...options(event), args: [input(event, true)] });
}

/** Starts the attempts of an event again, from the first and at once, whether a workflow has it or not. */
export async function requeueEvent(client: Client, event: EventToDeliver): Promise<void> {
  await client.workflow.signalWithStart(DELIVER_WEBHOOK, {
    ...options(event),
    args: [input(event, false)],
    signal: requeue,
  });
}

const input = ({ eventId, delaysMs }: EventToDeliver, attempted: boolean) => ({
  eventId,
  delaysMs,
  attempted,
});

function options({ eventId, type, partnerId, mode, taskQueue }: EventToDeliver) {
  return {
    taskQueue,
    workflowId: deliverWebhookWorkflowId(eventId),
    workflowIdConflictPolicy: 'USE_EXISTING',
    workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    staticSummary: `Deliver ${type} (${mode})`,
    // Where tasks queue up in Temporal, partners take turns.
    priority: { fairnessKey: partnerId },
    typedSearchAttributes: new TypedSearchAttributes([
      { key: partnerIdAttribute, value: partnerId },
      { key: modeAttribute, value: mode },
      { key: eventTypeAttribute, value: type },
      { key: deliveryStatusAttribute, value: 'retrying' },
    ]),
  } as const;
}

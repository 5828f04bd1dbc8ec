import type { WorkflowHandle } from '@temporalio/client';
import { webhooksTaskQueue } from '../../platform/config/task-queues.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import {
  DELIVER_WEBHOOK as DELIVER_WEBHOOK_TYPE,
  type DeliverWebhookInput,
  deliverWebhookWorkflowId,
  requeue,
} from '../../workflows/messages.ts';
import type { TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';
import { readRow, setUrl, workflowIdOf, writeEvents } from '../support/webhooks/events.ts';
import { answer, type Receiver, startReceiver } from '../support/webhooks/receiver.ts';
import { skipTime } from '../support/workflows.ts';
import type { Recording } from './recording.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 1_440 * MINUTE_MS;

interface Failing {
  id: string;
  stack: TestStack;
  workflow: WorkflowHandle;
  receiver: Receiver;
  reaches(status: string): Promise<unknown>;
}

/** Records an event whose receiver answers 500, until `then` changes that. */
function failing(then: (event: Failing) => Promise<void>): Recording {
  return async (stack: TestStack) => {
    const partner = await stack.createPartner();
    const receiver = await startReceiver();
    receiver.behave(answer(500));
    await setUrl(stack, partner, receiver.url);
    const [id = ''] = await writeEvents(stack, partner, 1);
    const reaches = (status: string) =>
      until(`it is ${status}, and the workflow knows`, async () => {
        const row = await readRow(stack, id);
        return row.status === status && row.workflow === 'told';
      });
    await reaches('retrying');
    const workflow = stack.client.workflow.getHandle(await workflowIdOf(stack, id));
    await then({ id, stack, workflow, receiver, reaches });
    await workflow.result();
    await receiver.stop();
    return workflow;
  };
}

const givenUp = async ({ id, stack, workflow, reaches }: Failing) => {
  for (const [index, delayMs] of stack.config.webhookDelaysMs.entries()) {
    await skipTime(workflow, delayMs + 1_000);
    await until('the next attempt', async () => (await readRow(stack, id)).attempt_count === index + 2);
    if (index + 1 < stack.config.webhookDelaysMs.length) await reaches('retrying');
  }
  await reaches('given_up');
};

/** The workflow of an event that was pruned. */
const deleted: Recording = ({ client, config }) => {
  const eventId = newId('evt');
  const endpointId = newId('we');
  return client.workflow.signalWithStart(DELIVER_WEBHOOK_TYPE, {
    workflowId: deliverWebhookWorkflowId(eventId, endpointId),
    taskQueue: webhooksTaskQueue(config.taskQueuePrefix),
    args: [{ eventId, endpointId }] satisfies [DeliverWebhookInput],
    signal: requeue,
    staticSummary: 'a delivery of an event that is deleted',
  });
};

export const DELIVER_WEBHOOK: Record<string, Recording> = {
  delivered: failing(async ({ workflow, receiver }) => {
    receiver.behave(answer(200));
    await skipTime(workflow, MINUTE_MS);
  }),
  deleted,
  gone: failing(async ({ workflow, receiver }) => {
    receiver.behave(answer(410));
    await skipTime(workflow, MINUTE_MS);
  }),
  'given-up': failing(async (event) => {
    await givenUp(event);
    await skipTime(event.workflow, 31 * DAY_MS);
  }),
};

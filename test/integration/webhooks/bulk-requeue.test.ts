import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';
import { countByStatus, setUrl, writeEvents } from '../../support/webhooks/events.ts';
import { answer, type Receiver, startReceiver } from '../../support/webhooks/receiver.ts';

/** What docs/operating.md, "Deliveries in the Temporal UI", tells operators to do. */
describe('the signal requeue in bulk', function () {
  this.timeout(180_000);
  let stack: TestStack;
  let receiver: Receiver;
  before(async () => {
    stack = await startTestStack({ webhookDelaysMs: [10, 10] });
    receiver = await startReceiver();
    receiver.behave(answer(500));
  });
  after(async () => {
    await stack.stop();
    await receiver.stop();
  });

  async function givenUp(count: number): Promise<TestPartner> {
    const partner = await stack.createPartner();
    await setUrl(stack, partner, receiver.url);
    await writeEvents(stack, partner, count);
    await until('they are given up', async () => (await countByStatus(stack, partner)).given_up === count);
    return partner;
  }

  it('sends the given-up events of one partner, by a visibility query, and of no other', async () => {
    const [partner, other] = [await givenUp(12), await givenUp(3)];
    receiver.behave(answer(200));
    const { workflowService, options } = stack.client;
    const query =
      `WorkflowType = "deliverWebhook" AND PartnerId = "${partner.id}" AND DeliveryStatus = "given_up" ` +
      'AND ExecutionStatus = "Running"';
    await until('the server lists them', async () => (await stack.client.workflow.count(query)).count === 12);
    await workflowService.startBatchOperation({
      namespace: options.namespace,
      jobId: randomUUID(),
      reason: 'a test',
      visibilityQuery: query,
      signalOperation: { signal: 'requeue', identity: 'a test' },
    });
    await until('they are delivered', async () => (await countByStatus(stack, partner)).delivered === 12);
    assert.deepEqual(await countByStatus(stack, other), { given_up: 3 });
    await until('nothing waits any more', async () => (await stack.client.workflow.count(query)).count === 0);
  });
});

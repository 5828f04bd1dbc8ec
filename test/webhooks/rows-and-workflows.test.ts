import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { query } from '../../platform/db/sql.ts';
import { queueDueRetries } from '../../webhooks/retries.ts';
import { testServers } from '../support/servers.ts';
import { startTcpProxy, type TcpProxy } from '../support/sockets.ts';
import { startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';
import {
  countByStatus,
  type DeliveryRow,
  endpointOf,
  makeDue,
  readRow,
  sendOverdue,
  setUrl,
  workflowIdOf,
  writeEvents,
} from '../support/webhooks/events.ts';
import { answer, type Receiver, startReceiver } from '../support/webhooks/receiver.ts';

const HOUR_MS = 3_600_000;
/** More than any event here needs, and none is due before the test says so. */
const DELAYS_MS = Array<number>(10).fill(HOUR_MS);

describe('an event’s row and its workflow', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let receiver: Receiver;
  let temporal: TcpProxy;
  before(async () => {
    const { address, namespace } = testServers().temporal;
    temporal = await startTcpProxy(address);
    stack = await startTestStack({
      webhookDelaysMs: DELAYS_MS,
      temporal: { connectionOptions: { address: temporal.address }, namespace },
    });
  });
  after(async () => {
    await stack.stop();
    await temporal.cut();
  });
  beforeEach(async () => {
    partner = await stack.createPartner();
    receiver = await startReceiver();
    receiver.behave(answer(500));
    await setUrl(stack, partner, receiver.url);
  });
  afterEach(() => receiver.stop());

  const workflowOf = async (id: string): Promise<WorkflowHandle> =>
    stack.client.workflow.getHandle(await workflowIdOf(stack, id));
  /** Has an event sent again, by hand, and waits until that has been its workflow's end. */
  async function requeue(id: string): Promise<void> {
    const workflow = await workflowOf(id);
    await workflow.signal('requeue');
    await workflow.result();
  }
  const isRunning = async (id: string) => (await (await workflowOf(id)).describe()).status.name === 'RUNNING';
  const stands = (id: string, expected: Partial<DeliveryRow>) =>
    until(`${id} is ${JSON.stringify(expected)}`, async () => {
      const row = await readRow(stack, id);
      return Object.entries(expected).every(([name, value]) => row[name as keyof DeliveryRow] === value);
    });
  /** Events that have failed once, and whose workflows wait. */
  async function failed(count: number): Promise<string[]> {
    const ids = await writeEvents(stack, partner, count);
    for (const id of ids) await stands(id, { status: 'retrying', workflow: 'told' });
    return ids;
  }
  /** Events of which the last attempt has failed as well. */
  async function givenUp(count: number): Promise<string[]> {
    const ids = await failed(count);
    await query(stack.orm.em.fork(), 'UPDATE delivery SET schedule_attempts = $2 WHERE event_id = ANY ($1)', [
      ids,
      DELAYS_MS.length,
    ]);
    await sendOverdue(stack, ids);
    for (const id of ids) await stands(id, { status: 'given_up', workflow: 'told', attempt_count: 2 });
    return ids;
  }

  it('get back in step after the workflow was terminated, and the event is sent when it is two minutes overdue', async () => {
    const [id = ''] = await failed(1);
    await (await workflowOf(id)).terminate('a test');
    await makeDue(stack, [id], 100);
    await queueDueRetries(stack.orm);
    assert.equal((await readRow(stack, id)).status, 'retrying', 'a workflow may be late');
    await sendOverdue(stack, [id]);
    await stands(id, { status: 'retrying', workflow: 'told', attempt_count: 2 });
    assert.ok(await isRunning(id));
    await (await workflowOf(id)).terminate('again');
    receiver.behave(answer(200));
    await sendOverdue(stack, [id]);
    await stands(id, { status: 'delivered', workflow: 'none', attempt_count: 3 });
  });

  it('allow an event that was given up to be sent again, although its workflow was terminated', async () => {
    const [id = ''] = await givenUp(1);
    await (await workflowOf(id)).terminate('a test');
    assert.equal((await partner.call('POST', `/events/${id}/resend`)).status, 202);
    await stands(id, { status: 'retrying', workflow: 'told', attempt_count: 3 });
    assert.ok(await isRunning(id));
  });

  it('stay in step if the workflow is told twice, as after a crash between its start and the mark', async () => {
    const [id = ''] = await failed(1);
    const before = await (await workflowOf(id)).describe();
    await query(stack.orm.em.fork(), `UPDATE delivery SET workflow = 'untold' WHERE event_id = $1`, [id]);
    await stands(id, { status: 'retrying', workflow: 'told' });
    assert.equal((await (await workflowOf(id)).describe()).runId, before.runId);
    receiver.behave(answer(200));
    await requeue(id);
    await stands(id, { status: 'delivered', workflow: 'none', attempt_count: 2 });
    assert.equal(receiver.received.length, 2);
  });

  it('stay in step if somebody starts the workflow again with the signal requeue', async () => {
    const [id = ''] = await failed(1);
    await (await workflowOf(id)).terminate('a test');
    await stack.client.workflow.signalWithStart('deliverWebhook', {
      workflowId: await workflowIdOf(stack, id),
      taskQueue: `${stack.config.taskQueuePrefix}webhooks`,
      args: [{ eventId: id, endpointId: await endpointOf(stack, id) }],
      signal: 'requeue',
    });
    await stands(id, { status: 'retrying', workflow: 'told', attempt_count: 2 });
    assert.ok(await isRunning(id));
    receiver.behave(answer(200));
    await requeue(id);
    await stands(id, { status: 'delivered', workflow: 'none', attempt_count: 3 });
  });

  it('are requeued for all given-up events of one account by a batch of signals, and for no other', async () => {
    await givenUp(1);
    const other = partner;
    partner = await stack.createPartner();
    await setUrl(stack, partner, receiver.url);
    await givenUp(3);
    receiver.behave(answer(200));
    const { workflowService, options } = stack.client;
    // What docs/temporal-ui.md, "Deliveries in the Temporal UI", tells operators to do.
    const visibilityQuery =
      `WorkflowType = "deliverWebhook" AND PartnerId = "${partner.id}" AND DeliveryStatus = "given_up" ` +
      'AND ExecutionStatus = "Running"';
    const listed = async () => (await stack.client.workflow.count(visibilityQuery)).count;
    await until('the server lists them', async () => (await listed()) === 3);
    await workflowService.startBatchOperation({
      namespace: options.namespace,
      jobId: randomUUID(),
      reason: 'a test',
      visibilityQuery,
      signalOperation: { signal: 'requeue', identity: 'a test' },
    });
    await until('they are delivered', async () => (await countByStatus(stack, partner)).delivered === 3);
    assert.deepEqual(await countByStatus(stack, other), { given_up: 1 });
    await until('nothing waits any more', async () => (await listed()) === 0);
  });

  it('never get out of step when PUT /webhook-endpoint meets retries of a disabled endpoint', async () => {
    const ids = await failed(20);
    for (let round = 0; round < 8; round++) {
      await query(
        stack.orm.em.fork(),
        `UPDATE webhook_endpoint SET status = 'disabled', disabled_reason = 'a test' WHERE partner_id = $1`,
        [partner.id],
      );
      const [, { status }] = await Promise.all([
        sendOverdue(stack, ids),
        partner.call('PUT', '/webhook-endpoint', { body: { url: receiver.url } }),
      ]);
      assert.equal(status, 200);
    }
    for (const id of ids) await stands(id, { status: 'retrying', workflow: 'told' });
    assert.deepEqual(await Promise.all(ids.map(isRunning)), Array(20).fill(true));
    receiver.behave(answer(200));
    await Promise.all(ids.map(requeue));
    for (const id of ids) await stands(id, { status: 'delivered', workflow: 'none' });
  });

  it('keep the schedule while Temporal is down, and the workflow starts when it is back', async () => {
    await temporal.cut();
    const [id = ''] = await writeEvents(stack, partner, 1);
    for (const attempt of [1, 2]) {
      await stands(id, { status: 'retrying', workflow: 'untold', attempt_count: attempt });
      // Nobody waits for a workflow that has yet to be started.
      await makeDue(stack, [id], 0);
      await queueDueRetries(stack.orm);
    }
    await stands(id, { status: 'retrying', workflow: 'untold', attempt_count: 3 });
    await temporal.restore();
    await stands(id, { status: 'retrying', workflow: 'told', attempt_count: 3 });
    assert.ok(await isRunning(id));
    assert.equal(receiver.received.length, 3);
  });
});

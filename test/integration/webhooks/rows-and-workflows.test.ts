import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkflowHandle } from '@temporalio/client';
import { query } from '../../../db/sql.ts';
import { startTcpProxy, type TcpProxy } from '../../support/sockets.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { testTemporal } from '../../support/temporal.ts';
import { until } from '../../support/until.ts';
import {
  countByStatus,
  type DeliveryRow,
  endpointOf,
  readRow,
  setUrl,
  workflowIdOf,
  writeEvents,
} from '../../support/webhooks/events.ts';
import { answer, type Receiver, startReceiver } from '../../support/webhooks/receiver.ts';

const HOUR_MS = 3_600_000;

describe('an event’s row and its workflow', function () {
  this.timeout(240_000);
  let stack: TestStack;
  let partner: TestPartner;
  let receiver: Receiver;
  let temporal: TcpProxy;
  async function start(webhookDelaysMs: number[]): Promise<void> {
    const { address, namespace } = await testTemporal();
    temporal = await startTcpProxy(address);
    stack = await startTestStack({
      webhookDelaysMs,
      temporal: { connectionOptions: { address: temporal.address }, namespace },
    });
    partner = await stack.createPartner();
    receiver = await startReceiver();
    receiver.behave(answer(500));
    await setUrl(stack, partner, receiver.url);
  }
  afterEach(async () => {
    await stack.stop();
    await receiver.stop();
    await temporal.cut();
  });

  const workflowOf = async (id: string): Promise<WorkflowHandle> =>
    stack.client.workflow.getHandle(await workflowIdOf(stack, id));
  const isRunning = async (id: string) => (await (await workflowOf(id)).describe()).status.name === 'RUNNING';
  const stands = (id: string, expected: Partial<DeliveryRow>) =>
    until(`${id} is ${JSON.stringify(expected)}`, async () => {
      const row = await readRow(stack, id);
      return Object.entries(expected).every(([name, value]) => row[name as keyof DeliveryRow] === value);
    });
  /** As if the time of the next attempt had been then. */
  const makeDue = (id: string, agoSeconds: number) =>
    query(
      stack.orm.em.fork(),
      `UPDATE delivery SET next_attempt_at = clock_timestamp() - $2 * interval '1 second' WHERE event_id = $1`,
      [id, agoSeconds],
    );

  it('get back in step after the workflow was terminated, and the event is sent when it is two minutes overdue', async () => {
    await start([HOUR_MS, HOUR_MS]);
    const [id = ''] = await writeEvents(stack, partner, 1);
    await stands(id, { status: 'retrying', workflow: 'told' });
    await (await workflowOf(id)).terminate('a test');
    await makeDue(id, 100);
    await sleep(3_000);
    assert.equal(receiver.received.length, 1, 'a workflow may be late');
    await makeDue(id, 121);
    await stands(id, { status: 'retrying', workflow: 'told', attempt_count: 2 });
    assert.ok(await isRunning(id));
    await (await workflowOf(id)).terminate('again');
    receiver.behave(answer(200));
    await makeDue(id, 121);
    await stands(id, { status: 'delivered', workflow: 'none', attempt_count: 3 });
  });

  it('allow an event that was given up to be sent again, although its workflow was terminated', async () => {
    await start([]);
    const [id = ''] = await writeEvents(stack, partner, 1);
    await stands(id, { status: 'given_up', workflow: 'told' });
    await (await workflowOf(id)).terminate('a test');
    assert.equal((await partner.call('POST', `/events/${id}/resend`)).status, 202);
    await stands(id, { status: 'given_up', workflow: 'told', attempt_count: 2 });
    assert.ok(await isRunning(id));
  });

  it('stay in step if the workflow is told twice, as after a crash between its start and the mark', async () => {
    await start([HOUR_MS]);
    const [id = ''] = await writeEvents(stack, partner, 1);
    await stands(id, { status: 'retrying', workflow: 'told' });
    const before = await (await workflowOf(id)).describe();
    await query(stack.orm.em.fork(), `UPDATE delivery SET workflow = 'untold' WHERE event_id = $1`, [id]);
    await stands(id, { status: 'retrying', workflow: 'told' });
    assert.equal((await (await workflowOf(id)).describe()).runId, before.runId);
    receiver.behave(answer(200));
    await (await workflowOf(id)).signal('requeue');
    await (await workflowOf(id)).result();
    await stands(id, { status: 'delivered', workflow: 'none', attempt_count: 2 });
    assert.equal(receiver.received.length, 2);
  });

  it('stay in step if somebody starts the workflow again with the signal requeue', async () => {
    await start([HOUR_MS, HOUR_MS]);
    const [id = ''] = await writeEvents(stack, partner, 1);
    await stands(id, { status: 'retrying', workflow: 'told' });
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
    await (await workflowOf(id)).signal('requeue');
    await (await workflowOf(id)).result();
    await stands(id, { status: 'delivered', workflow: 'none', attempt_count: 3 });
  });

  it('keep the schedule while Temporal is down, and the workflow starts when it is back', async () => {
    await start([1_000, 1_500, HOUR_MS]);
    await temporal.cut();
    const [id = ''] = await writeEvents(stack, partner, 1);
    await stands(id, { status: 'retrying', workflow: 'untold', attempt_count: 3 });
    await temporal.restore();
    await stands(id, { status: 'retrying', workflow: 'told', attempt_count: 3 });
    assert.ok(await isRunning(id));
    assert.equal(receiver.received.length, 3);
  });

  it('never get out of step, however often PUT /webhook-endpoint meets the end of retries', async () => {
    await start([300, 300, HOUR_MS]);
    const ids = await writeEvents(stack, partner, 60);
    const stopAt = Date.now() + 12_000;
    while (Date.now() < stopAt) {
      await query(
        stack.orm.em.fork(),
        `UPDATE webhook_endpoint SET status = 'disabled', disabled_reason = 'a test' WHERE partner_id = $1`,
        [partner.id],
      );
      await sleep(Math.random() * 700);
      const { status } = await partner.call('PUT', '/webhook-endpoint', { body: { url: receiver.url } });
      assert.equal(status, 200);
      await sleep(Math.random() * 700);
    }
    await until('all have had their attempts and their workflows know', async () => {
      const rows = await Promise.all(ids.map((id) => readRow(stack, id)));
      const inAnHour = Date.now() + HOUR_MS / 2;
      return rows.every(
        ({ status, workflow, next_attempt_at: next }) =>
          status === 'retrying' && workflow === 'told' && new Date(next ?? 0).getTime() > inAnHour,
      );
    });
    const running = await Promise.all(ids.map(isRunning));
    assert.equal(running.filter((is) => !is).length, 0, 'retrying, with no workflow');
    receiver.behave(answer(200));
    for (const id of ids) await (await workflowOf(id)).signal('requeue');
    await Promise.all(ids.map(async (id) => (await workflowOf(id)).result()));
    // The other event says that the endpoint is failing, and there is no other endpoint.
    assert.deepEqual(await countByStatus(stack, partner), { delivered: 60, no_endpoint: 1 });
  });
});

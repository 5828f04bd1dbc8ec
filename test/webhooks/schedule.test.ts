import assert from 'node:assert/strict';
import type { WorkflowHandle } from '@temporalio/client';
import { query } from '../../platform/db/sql.ts';
import { requeueDeliveries } from '../../webhooks/send-on-request.ts';
import { requeue } from '../../workflows/messages.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';
import { endpointOf, readRow, setUrl, workflowIdOf, writeEvents } from '../support/webhooks/events.ts';
import { answer, type Receiver, startReceiver } from '../support/webhooks/receiver.ts';
import { detailsOf, skipTime } from '../support/workflows.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** The schedule that docs/partners/webhooks.md promises. */
const DELAYS_MS = [30 * SECOND_MS, 5 * MINUTE_MS, 30 * MINUTE_MS, 120 * MINUTE_MS];

/** Time is skipped on the real server. */
describe('the schedule of a failing webhook', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let receiver: Receiver;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    partner = await stack.createPartner();
    receiver = await startReceiver();
    receiver.behave(answer(503));
    await setUrl(stack, partner, receiver.url);
  });
  afterEach(() => receiver.stop());

  async function failing(): Promise<{ id: string; workflow: WorkflowHandle }> {
    const [id = ''] = await writeEvents(stack, partner, 1);
    await until('its workflow has begun', async () => (await readRow(stack, id)).workflow === 'told');
    return { id, workflow: stack.client.workflow.getHandle(await workflowIdOf(stack, id)) };
  }

  /** How long after the last attempt the next one is due. */
  async function waitMs(id: string): Promise<number> {
    const [row] = await query<{ waits: number }>(
      stack.orm.em.fork(),
      `SELECT 1000 * extract(epoch FROM d.next_attempt_at - t.started_at)::float8 AS waits
       FROM delivery d JOIN delivery_attempt t ON t.event_id = d.event_id AND t.number = d.attempt_count
       WHERE d.event_id = $1`,
      [id],
    );
    return row?.waits ?? Number.NaN;
  }

  const knowsOf = (id: string, attempt: number) =>
    until(`the workflow knows of attempt ${attempt}`, async () => {
      const { attempt_count, workflow } = await readRow(stack, id);
      return attempt_count === attempt && workflow === 'told';
    });

  async function giveUp(id: string, workflow: WorkflowHandle): Promise<void> {
    for (const [index, delayMs] of DELAYS_MS.entries()) {
      const waits = await waitMs(id);
      assert.ok(waits >= delayMs && waits < 2 * delayMs, `attempt ${index + 2} is due after ${waits} ms`);
      await skipTime(workflow, delayMs + SECOND_MS);
      await knowsOf(id, index + 2);
    }
    assert.equal((await readRow(stack, id)).status, 'given_up');
  }

  const waitsForAttention = (workflow: WorkflowHandle) =>
    until('it needs attention', async () => {
      const { searchAttributes } = await workflow.describe();
      return (
        searchAttributes.NeedsAttention?.[0] === true && searchAttributes.DeliveryStatus?.[0] === 'given_up'
      );
    });

  it('has attempts after 30 s, 5 min, 30 min and 2 h with the same id and bytes, and then gives up and says why', async () => {
    const { id, workflow } = await failing();
    const { status, searchAttributes } = await workflow.describe();
    assert.deepEqual([status.name, searchAttributes.DeliveryStatus], ['RUNNING', ['retrying']]);
    await until('its details name the next attempt', async () =>
      /^Attempt 1 failed: http_503\. The next one is due at 20\S+Z;/.test(await detailsOf(workflow)),
    );
    await giveUp(id, workflow);
    assert.equal(receiver.received.length, 5);
    const [first, ...others] = receiver.received;
    for (const other of others) {
      assert.equal(other.body, first?.body);
      assert.equal(other.headers['x-service-event-id'], id);
    }
    const signatures = receiver.received.map(({ headers }) => headers['x-service-signature']);
    assert.equal(new Set(signatures).size, 5, 'each attempt has a timestamp of its own');
    await waitsForAttention(workflow);
    const details = await detailsOf(workflow);
    assert.match(details, /^\*\*Given up after 5 attempts\*\*; the last error was http_503/);
    assert.match(details, /the signal `requeue` \(no input\)/);
  });

  it('starts over when the event is requeued, and ends when it is delivered', async () => {
    const { id, workflow } = await failing();
    await giveUp(id, workflow);
    await waitsForAttention(workflow);
    await workflow.signal(requeue);
    await knowsOf(id, 6);
    assert.equal((await readRow(stack, id)).status, 'retrying');
    const [entry] = await query<{ actor: string; identity: string }>(
      stack.orm.em.fork(),
      `SELECT actor, detail ->> 'identity' AS identity FROM audit_entry WHERE action = 'webhook.requeue' AND subject = $1`,
      [id],
    );
    assert.deepEqual(entry, { actor: 'temporal', identity: stack.client.options.identity });
    receiver.behave(answer(200));
    await skipTime(workflow, DELAYS_MS[0] ?? 0);
    assert.deepEqual(await workflow.result(), { outcome: 'delivered', attempts: 7 });
    assert.equal((await readRow(stack, id)).status, 'delivered');
    const { searchAttributes } = await workflow.describe();
    assert.deepEqual(
      [searchAttributes.DeliveryStatus, searchAttributes.NeedsAttention],
      [['delivered'], [false]],
    );
  });

  it('keeps its workflow for 30 days after giving up, and the event can be requeued even later', async () => {
    const { id, workflow } = await failing();
    await giveUp(id, workflow);
    await skipTime(workflow, 30 * DAY_MS - MINUTE_MS);
    assert.equal((await workflow.describe()).status.name, 'RUNNING');
    await skipTime(workflow, 2 * MINUTE_MS);
    await workflow.result();
    assert.equal((await readRow(stack, id)).status, 'given_up');
    receiver.behave(answer(204));
    const endpointId = await endpointOf(stack, id);
    await requeueDeliveries(stack.orm, [{ eventId: id, endpointId }], { actor: 'test', audit: null });
    await until('it is delivered', async () => (await readRow(stack, id)).status === 'delivered');
    assert.equal(receiver.received.length, 6);
  });
});

import assert from 'node:assert/strict';
import { pino } from 'pino';
import { query } from '../../../db/sql.ts';
import { type RunningWorker, startWorker } from '../../../worker/start-worker.ts';
import { startTestStack, type TestPartner, type TestStack, testWorkflowBundle } from '../../support/stack.ts';
import { until } from '../../support/until.ts';
import { countByStatus, setUrl, writeEvents } from '../../support/webhooks/events.ts';
import { answer, type Receiver, startReceiver } from '../../support/webhooks/receiver.ts';

describe('retries of one account', function () {
  this.timeout(240_000);
  let stack: TestStack;
  const receivers: Receiver[] = [];
  afterEach(async () => {
    for (const receiver of receivers.splice(0)) await receiver.stop();
    await stack.stop();
  });

  async function receiving(): Promise<{ partner: TestPartner; receiver: Receiver }> {
    const [partner, receiver] = [await stack.createPartner(), await startReceiver()];
    receivers.push(receiver);
    await setUrl(stack, partner, receiver.url);
    return { partner, receiver };
  }

  const toldOf = async (ids: string[]) => {
    const [row] = await query<{ told: number }>(
      stack.orm.em.fork(),
      `SELECT count(*)::int AS told FROM delivery WHERE event_id = ANY ($1) AND workflow = 'told'`,
      [ids],
    );
    return row?.told;
  };

  /** When the account's workflows were started, the earliest first, by Temporal's clock. */
  async function workflowStarts({ id }: TestPartner, count: number): Promise<number[]> {
    return until(`${count} workflows can be found`, async () => {
      const starts: number[] = [];
      for await (const { startTime } of stack.client.workflow.list({ query: `PartnerId = "${id}"` })) {
        starts.push(startTime.getTime());
      }
      return starts.length >= count && starts.sort((a, b) => a - b);
    });
  }

  it('do not delay a due retry of another account when 300 hang at a time', async () => {
    stack = await startTestStack({ webhookDelaysMs: [3_000], webhookTimeoutMs: 10_000 });
    const healthy = await receiving();
    /** Writes an event that is refused once, and waits for its retry. */
    async function retried(): Promise<void> {
      const refused = healthy.receiver.received.length;
      healthy.receiver.behave((request, response, number) =>
        answer(number === refused ? 500 : 200)(request, response, number),
      );
      const [id = ''] = await writeEvents(stack, healthy.partner, 1);
      await until('its retry comes', async () => healthy.receiver.attempts(id).length === 2);
    }
    await retried();

    const hanging = await receiving();
    let hung = 0;
    hanging.receiver.behave((request, response, number) => {
      if (hanging.receiver.attempts(request.id).length === 1) answer(500)(request, response, number);
      else hung += 1;
    });
    await writeEvents(stack, hanging.partner, 300);
    await until('retries hang, and most others wait for their turn', async () => {
      const { pending = 0 } = await countByStatus(stack, hanging.partner);
      return hung >= 2 && pending > 200;
    });
    await retried();
    // A worker has two places for an endpoint that hangs, and each is taken for ten seconds.
    assert.ok(hung < 50, `${hung} retries had a place`);
    const { pending = 0 } = await countByStatus(stack, hanging.partner);
    assert.ok(pending > 200, `it waited until ${300 - pending} of the others were made`);
  });

  it('start at most 20 workflows a second across all workers, and delay nobody else', async () => {
    // However long all of this takes, no retry is due before it is over.
    stack = await startTestStack({ webhookDelaysMs: [3_600_000] });
    const [failing, other] = [await receiving(), await receiving()];
    for (const { receiver } of [failing, other]) receiver.behave(answer(500));
    let second: RunningWorker | undefined;
    try {
      second = await startWorker(stack.config, pino({ level: 'silent' }), {
        workflowBundle: await testWorkflowBundle(),
      });
      const ids = await writeEvents(stack, failing.partner, 200);
      await until('some have a workflow', async () => (await toldOf(ids)) !== 0);
      const others = await writeEvents(stack, other.partner, 3);
      await until('all have theirs', async () => (await toldOf([...ids, ...others])) === 203);
      const starts = await workflowStarts(failing.partner, 200);
      assert.equal(starts.length, 200, 'one workflow each');
      const [first = 0, last = 0] = [starts[0], starts.at(-1)];
      assert.ok(last - first >= 9_800, `200 in ${last - first} ms`);
      const ofOther = await workflowStarts(other.partner, 3);
      assert.ok((ofOther.at(-1) ?? last) < last, 'the other waited for all of them');
      assert.equal(failing.receiver.received.length, 200, 'each waits for its time');
    } finally {
      await second?.stop();
    }
  });
});

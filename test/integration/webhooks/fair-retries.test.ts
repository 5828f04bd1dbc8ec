import assert from 'node:assert/strict';
import { pino } from 'pino';
import { type RunningWorker, startWorker } from '../../../worker/start-worker.ts';
import { startTestStack, type TestPartner, type TestStack, testWorkflowBundle } from '../../support/stack.ts';
import { until } from '../../support/until.ts';
import { countByStatus, readRow, setUrl, writeEvents } from '../../support/webhooks/events.ts';
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
    const rows = await Promise.all(ids.map((id) => readRow(stack, id)));
    return rows.filter(({ workflow }) => workflow === 'told').length;
  };

  it('that hang, 300 at a time, do not delay the due retry of another', async () => {
    stack = await startTestStack({ webhookDelaysMs: [3_000], webhookTimeoutMs: 10_000 });
    const healthy = await receiving();
    /** Of an event that is refused once: how long its retry was in coming. */
    async function retryMs(): Promise<number> {
      const refused = healthy.receiver.received.length;
      healthy.receiver.behave((request, response, number) =>
        answer(number === refused ? 500 : 200)(request, response, number),
      );
      const [id = ''] = await writeEvents(stack, healthy.partner, 1);
      await until('its retry comes', async () => healthy.receiver.attempts(id).length === 2);
      const [first, second] = healthy.receiver.attempts(id);
      return (second?.at ?? 0) - (first?.at ?? 0);
    }
    const aloneMs = await retryMs();

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
    const besideMs = await retryMs();
    console.log(`      ${aloneMs} ms alone, ${besideMs} ms beside them`);
    // Where they held the worker's places it was 40 s.
    assert.ok(besideMs < aloneMs + 15_000, `${aloneMs} ms alone, ${besideMs} ms beside them`);
    // A worker has two places for an endpoint that hangs, and each is taken for ten seconds.
    assert.ok(hung < 50, `${hung} retries had a place`);
  });

  it('have their workflows started at most 20 a second by all workers together, and nobody else waits', async () => {
    stack = await startTestStack();
    const [failing, other] = [await receiving(), await receiving()];
    for (const { receiver } of [failing, other]) receiver.behave(answer(500));
    let second: RunningWorker | undefined;
    try {
      second = await startWorker(stack.config, pino({ level: 'silent' }), {
        workflowBundle: await testWorkflowBundle(),
      });
      const ids = await writeEvents(stack, failing.partner, 200);
      await until('some have a workflow', async () => (await toldOf(ids)) > 0);
      const others = await writeEvents(stack, other.partner, 3);
      await until("the other's have theirs", async () => (await toldOf(others)) === 3);
      const before = await toldOf(ids);
      await until('all have theirs', async () => (await toldOf(ids)) === 200);
      assert.ok(before < 200, 'the other waited for all of them');
      const startTimes: number[] = [];
      for await (const { startTime } of stack.client.workflow.list({
        query: `PartnerId = "${failing.partner.id}"`,
      })) {
        startTimes.push(startTime.getTime());
      }
      assert.equal(startTimes.length, 200, 'one workflow each');
      const tookMs = Math.max(...startTimes) - Math.min(...startTimes);
      assert.ok(tookMs >= 9_800, `200 in ${tookMs} ms`);
      assert.equal(failing.receiver.received.length, 200, 'each waits for its time');
    } finally {
      await second?.stop();
    }
  });
});

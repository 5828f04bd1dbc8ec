import assert from 'node:assert/strict';
import { pino } from 'pino';
import type { WorkerQueue } from '../../platform/config/task-queues.ts';
import { type RunningWorker, startWorker } from '../../worker/start-worker.ts';
import { createCard, settledCard } from '../support/cards.ts';
import { fundedPartner } from '../support/money.ts';
import { startTestStack, type TestStack, testWorkflowBundle } from '../support/stack.ts';
import { until } from '../support/until.ts';
import { type Receiver, startReceiver } from '../support/webhooks/receiver.ts';

describe('workers that WORKER_QUEUES gives different task queues', () => {
  let stack: TestStack;
  let receiver: Receiver;
  const workers: RunningWorker[] = [];

  before(async () => {
    receiver = await startReceiver();
    stack = await startTestStack({ cardCreationWaitMs: 50 }, { worker: false });
  });
  after(async () => {
    await Promise.all(workers.map((worker) => worker.stop()));
    await receiver?.stop();
    await stack?.stop();
  });

  async function startFor(queues: WorkerQueue[]): Promise<RunningWorker> {
    const config = { ...stack.config, worker: { ...stack.config.worker, queues } };
    const workflowBundle = await testWorkflowBundle();
    const worker = await startWorker(config, pino({ level: 'silent' }), { workflowBundle });
    workers.push(worker);
    return worker;
  }

  it('share the work, so that one completes a live card and the other delivers its event', async () => {
    const cards = await startFor(['cards']);
    await until('it polls its own queue and no other', async () => {
      const { workers } = (await (await fetch(`${cards.operationsUrl}/readyz`)).json()) as {
        workers: Record<string, number>;
      };
      const polled = Object.entries(workers).filter(([, count]) => count > 0);
      return polled.length === 1 && polled[0]?.[0].endsWith('cards');
    });
    const partner = await fundedPartner(stack);
    await partner.call('PUT', '/webhook-endpoint', { mode: 'live', body: { url: receiver.url } });
    const { json } = await createCard(partner, { amount: 1_041 }, { mode: 'live' });
    assert.equal((await settledCard(partner, json.id)).status, 'active');
    assert.equal(receiver.received.length, 0);

    await startFor(['webhooks', 'deposits']);
    await until('the event is delivered', () => receiver.received.length === 1);
  });
});

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { type RunningApi, startApi } from '../../api/server.ts';
import { freePort } from '../../dev/free-port.ts';
import { cardsTaskQueue } from '../../platform/config/task-queues.ts';
import { startEagerWorker } from '../../platform/temporal/eager-worker.ts';
import { issueCardWorkflowId } from '../../workflows/messages.ts';
import { fundedPartner } from '../support/money.ts';
import { startTestStack, type TestPartner, type TestStack, testWorkflowBundle } from '../support/stack.ts';
import { until } from '../support/until.ts';

describe('an API process whose own worker cannot start at first', () => {
  let stack: TestStack;
  let api: RunningApi;
  let partner: TestPartner;
  let attempts = 0;
  const mayStart = Promise.withResolvers<void>();
  const logged: string[] = [];

  before(async () => {
    stack = await startTestStack({ cardCreationWaitMs: 30_000 }, { hosted: false });
    const config = { ...stack.config, port: await freePort() };
    const logger = pino({ level: 'error' }, { write: (line: string) => logged.push(line) });
    api = await startApi(config, logger, {
      async hostWorker(activities) {
        attempts += 1;
        if (attempts === 1) throw new Error('no bundle, in a test');
        await mayStart.promise;
        const taskQueue = cardsTaskQueue(config.taskQueuePrefix);
        const workflowBundle = await testWorkflowBundle();
        return startEagerWorker({ config, taskQueue, activities, workflowBundle, logger });
      },
    });
    partner = await fundedPartner(stack, 100_000);
  });
  after(async () => {
    await api.stop();
    await stack.stop();
  });

  /** Issues a live card at that process. @returns who had its first workflow task */
  async function issue(): Promise<string> {
    const response = await fetch(`${api.url}/cards`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${partner.keys.live}`,
        'content-type': 'application/json',
        'idempotency-key': randomUUID(),
      },
      body: JSON.stringify({ amount: 1_000, external_ref: randomUUID() }),
    });
    assert.equal(response.status, 201);
    const { id } = (await response.json()) as { id: string };
    const workflow = stack.client.workflow.getHandle(issueCardWorkflowId(id));
    await workflow.result();
    const { events } = await workflow.fetchHistory();
    const started = events?.find((event) => event.workflowTaskStartedEventAttributes);
    return started?.workflowTaskStartedEventAttributes?.identity ?? '';
  }

  it('leaves live work to the queue, and then does the first tasks itself', async () => {
    await until('it is logged', async () => logged.some((line) => line.includes('no bundle, in a test')));
    assert.doesNotMatch(await issue(), /^api-/);
    mayStart.resolve();
    await until('the first task is its own', async () => (await issue()).startsWith('api-'));
    assert.equal(attempts, 2);
  });
});

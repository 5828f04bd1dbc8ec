import assert from 'node:assert/strict';
import { pino } from 'pino';
import { type RunningApi, startApi } from '../../api/server.ts';
import { freePort } from '../../dev/free-port.ts';
import { issueCardWorkflowId } from '../../workflows/messages.ts';
import { createCard } from '../support/cards.ts';
import { fundedPartner } from '../support/money.ts';
import {
  hostTestWorker,
  partnerAt,
  startTestStack,
  type TestPartner,
  type TestStack,
} from '../support/stack.ts';
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
      async hostWorker(activities, tracing) {
        attempts += 1;
        if (attempts === 1) throw new Error('no bundle, in a test');
        await mayStart.promise;
        return hostTestWorker(config, logger)(activities, tracing);
      },
    });
    partner = partnerAt(await fundedPartner(stack, 100_000), api.url);
  });
  after(async () => {
    await api.stop();
    await stack.stop();
  });

  /** Issues a live card at that process. @returns who had its first workflow task */
  async function issue(): Promise<string> {
    const { status, json, text } = await createCard(partner, { amount: 1_000 }, { mode: 'live' });
    assert.equal(status, 201, text);
    const workflow = stack.client.workflow.getHandle(issueCardWorkflowId(json.id));
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

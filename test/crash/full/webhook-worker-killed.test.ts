import assert from 'node:assert/strict';
import { WorkflowNotFoundError } from '@temporalio/client';
import type { Child } from '../../../dev/process/child.ts';
import { kill, scratchFolder, startProcess } from '../../support/crash/processes.ts';
import { startWatchingProxy, type Watched } from '../../support/sockets.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';
import { readRow, seedEvents, setUrl, workflowIdOf, writeEvents } from '../../support/webhooks/events.ts';
import { answer, type Receiver, startReceiver } from '../../support/webhooks/receiver.ts';

interface Killing {
  stack: TestStack;
  partner: TestPartner;
  receiver: Receiver;
  worker: Child;
}

/** A worker that is killed -9 when this goes by between it and PostgreSQL. */
async function withWorkerKilledAt(
  watched: Watched,
  test: (killing: Killing) => Promise<void>,
): Promise<void> {
  const stack = await startTestStack({}, { worker: false });
  const receiver = await startReceiver();
  const database = new URL(stack.config.databaseUrl);
  const proxy = await startWatchingProxy(database.host, watched, () => process.kill(worker.pid, 'SIGKILL'));
  database.host = proxy.address;
  const config = { ...stack.config, databaseUrl: database.href };
  const worker = await startProcess(config, scratchFolder(), 'worker/main.ts');
  try {
    await test({ stack, partner: await stack.createPartner(), receiver, worker });
  } finally {
    await kill(worker);
    proxy.stop();
    await stack.stop();
    await receiver.stop();
  }
}

/** Only what workflows have to hear of has the error with it. */
const BEFORE_START: Watched = { from: 'server', text: 'http_500' };
const BEFORE_MARK: Watched = { from: 'client', text: 'update "delivery" set "workflow" = CASE' };

const TAKES_IT: Watched = { from: 'client', text: 'select "wanted", "event_types", "after_event_id"' };
const PUTS_IN_LINE: Watched = { from: 'client', text: 'INSERT INTO delivery AS d (event_id' };
const RECORDS_PROGRESS: Watched = { from: 'client', text: 'UPDATE webhook_replay SET status' };
const LEASES: Watched = { from: 'server', text: 'standard_headers' };

describe('a worker that is killed -9', () => {
  for (const [moment, watched, isStarted] of [
    ['between recording a failed attempt and starting its workflow', BEFORE_START, false],
    ["between starting a failed event's workflow and recording that", BEFORE_MARK, true],
  ] as const) {
    it(`${moment} is replaced by another, which repeats no attempt and leaves one workflow`, () =>
      withWorkerKilledAt(watched, async ({ stack, partner, receiver, worker }) => {
        receiver.behave(answer(500));
        await setUrl(stack, partner, receiver.url);
        const [id = ''] = await writeEvents(stack, partner, 1);
        assert.equal(await worker.exited, 'signal SIGKILL');
        const left = await readRow(stack, id);
        assert.deepEqual([left.status, left.attempt_count, left.workflow], ['retrying', 1, 'untold']);
        const workflow = stack.client.workflow.getHandle(await workflowIdOf(stack, id));
        if (isStarted) await workflow.describe();
        else await assert.rejects(workflow.describe(), WorkflowNotFoundError);

        await stack.startWorker();
        await until('it is told', async () => (await readRow(stack, id)).workflow === 'told');
        assert.equal((await workflow.describe()).status.name, 'RUNNING');
        assert.equal((await readRow(stack, id)).attempt_count, 1);
        assert.equal(receiver.received.length, 1);
      }));
  }

  for (const [moment, watched] of [
    ['as it takes a replay', TAKES_IT],
    ["as it puts a replay's events in line", PUTS_IN_LINE],
    ['as it records how far a replay has got', RECORDS_PROGRESS],
    ['as it takes replayed events to send', LEASES],
  ] as const) {
    it(`${moment} is replaced by another, which sends every event of the replay`, () =>
      withWorkerKilledAt(watched, async ({ stack, partner, receiver, worker }) => {
        const ages = Array.from({ length: 100 }, (_, i) => i * 1_000);
        const earlier = await seedEvents(
          stack,
          partner,
          ages.map((ageMs) => ({ ageMs, status: 'no_endpoint' })),
        );
        const endpoint = await partner.call('POST', '/webhook-endpoints', { body: { url: receiver.url } });
        const path = `/webhook-endpoints/${endpoint.json.id}`;
        const { status, json } = await partner.call('POST', `${path}/replay`, {
          body: { created_gte: new Date(Date.now() - 3_600_000).toISOString() },
        });
        assert.equal(status, 202);
        assert.equal(await worker.exited, 'signal SIGKILL');

        await stack.startWorker();
        const ended = await until('the replay is completed', async () => {
          const shown = (await partner.call('GET', `${path}/replays/${json.id}`)).json;
          return shown.status === 'completed' && shown;
        });
        assert.deepEqual([ended.matched, ended.sent], [100, 100]);
        assert.deepEqual([...new Set(receiver.received.map(({ id }) => id))].sort(), earlier.sort());
      }));
  }
});

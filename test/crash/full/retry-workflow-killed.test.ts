import assert from 'node:assert/strict';
import { WorkflowNotFoundError } from '@temporalio/client';
import { kill, scratchFolder, startProcess } from '../../support/crash/processes.ts';
import { startWatchingProxy, type Watched } from '../../support/sockets.ts';
import { startTestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';
import { readRow, setUrl, workflowIdOf, writeEvents } from '../../support/webhooks/events.ts';
import { answer, startReceiver } from '../../support/webhooks/receiver.ts';

/** What goes by between the worker and PostgreSQL right then. Only what workflows have to hear of has the error with it. */
const BEFORE_START: Watched = { from: 'server', text: 'http_500' };
const BEFORE_MARK: Watched = { from: 'client', text: 'update "delivery" set "workflow" = CASE' };

describe('a worker that is killed -9', () => {
  for (const [moment, watched, isStarted] of [
    ['between recording a failed attempt and starting its workflow', BEFORE_START, false],
    ["between starting a failed event's workflow and recording that", BEFORE_MARK, true],
  ] as const) {
    it(`${moment} is replaced by another, which repeats no attempt and leaves one workflow`, async () => {
      const folder = scratchFolder();
      const stack = await startTestStack({}, { worker: false });
      const receiver = await startReceiver();
      receiver.behave(answer(500));
      const database = new URL(stack.config.databaseUrl);
      const proxy = await startWatchingProxy(database.host, watched, () =>
        process.kill(worker.pid, 'SIGKILL'),
      );
      database.host = proxy.address;
      const worker = await startProcess(
        { ...stack.config, databaseUrl: database.href },
        folder,
        'worker/main.ts',
      );
      try {
        const partner = await stack.createPartner();
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
      } finally {
        await kill(worker);
        proxy.stop();
        await stack.stop();
        await receiver.stop();
      }
    });
  }
});

import assert from 'node:assert/strict';
import { Client, Connection } from '@temporalio/client';
import { pino } from 'pino';
import { freePort } from '../../dev/free-port.ts';
import { cardsTaskQueue } from '../../platform/config/task-queues.ts';
import { query } from '../../platform/db/sql.ts';
import { startSweep } from '../../requests/jobs.ts';
import { prepareIssuance } from '../support/crash/fundings.ts';
import { ask, askAt, assertEnd, CASES } from '../support/crash/operations.ts';
import { kill, scratchFolder, startApiProcess } from '../support/crash/processes.ts';
import { balanceOf } from '../support/money.ts';
import { FUNDS } from '../support/operation-kinds.ts';
import { startTestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';
import { startedWorkflow } from '../support/workflows.ts';

describe('POST /cards while Temporal is away', () => {
  it('answers 503 and moves no money, and the sweep starts the issuance as soon as Temporal is back', async () => {
    const folder = scratchFolder();
    const stack = await startTestStack({ cardCreationWaitMs: 500, logLevel: 'error' }, { worker: false });
    const away = { address: `127.0.0.1:${await freePort()}` };
    const port = await freePort();
    const config = { ...stack.config, port, temporal: { ...stack.config.temporal, connectionOptions: away } };
    const api = await startApiProcess(config, folder);
    const connection = Connection.lazy(away);
    try {
      const issuance = await prepareIssuance(CASES['live 00'], stack);
      const refused = await askAt(`http://${config.host}:${port}`, issuance);
      assert.deepEqual([refused.status, refused.json.error.code], [503, 'unavailable']);
      assert.deepEqual(await balanceOf(issuance.partner, 'live'), [FUNDS, 0, FUNDS]);

      const logged: string[] = [];
      const sweep = startSweep({
        orm: stack.orm,
        client: new Client({ connection }),
        taskQueue: cardsTaskQueue(config.taskQueuePrefix),
        config,
        logger: pino({ level: 'error' }, { write: (line: string) => logged.push(line) }),
      });
      await until('the sweep fails', async () =>
        logged.some((line) => line.includes('the sweep of abandoned')),
      );
      await sweep.stop();
      // However long Temporal is away, its turn comes again within seconds.
      const claims = await query(
        stack.orm.em.fork(),
        `SELECT sweep_after < now() + interval '5 seconds' AS soon FROM idempotency_claim`,
      );
      assert.deepEqual(claims, [{ soon: true }]);

      await stack.startWorker();
      await (await startedWorkflow(stack)).result();
      await assertEnd(stack, issuance, await ask(issuance));
    } finally {
      await kill(api);
      await connection.close();
      await stack.stop();
    }
  });
});

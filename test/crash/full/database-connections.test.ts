import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { freePort } from '../../../dev/free-port.ts';
import { openOrm } from '../../../platform/db/orm.ts';
import { query } from '../../../platform/db/sql.ts';
import { transaction } from '../../../platform/db/transaction.ts';
import { prepareIssuance, prepareTopUp } from '../../support/crash/fundings.ts';
import { askAt, assertEnd, CASES, untilAnswered } from '../../support/crash/operations.ts';
import { kill, scratchFolder, startApiProcess, startProcess } from '../../support/crash/processes.ts';
import { assertLedgerClean } from '../../support/money.ts';
import { connectTo, createTestDatabase, ownerUrlOf } from '../../support/postgres.ts';
import { type Answer, startTestStack } from '../../support/stack.ts';

describe('a pool whose connections PostgreSQL ends', () => {
  it('gets every one of them back, wherever its transaction was', async () => {
    const databaseUrl = await createTestDatabase();
    const orm = await openOrm({ databaseUrl, poolSize: 2 });
    const reaper = await connectTo(ownerUrlOf(databaseUrl));
    try {
      for (let round = 0; round < 4; round++) {
        const lost = transaction(orm, async (tx) => {
          await query(tx, 'SELECT 1');
          await endConnections(reaper);
          await query(tx, 'SELECT 1');
        });
        await assert.rejects(lost, /terminat|not queryable/);
        const lostInCommit = transaction(orm, async (tx) => {
          await query(tx, 'SELECT 1');
          await endConnections(reaper);
        });
        await assert.rejects(lostInCommit, /terminat|not queryable/);
      }
      assert.deepEqual(await query(orm.em.fork(), 'SELECT 1 AS one'), [{ one: 1 }]);
    } finally {
      await reaper.end();
      await orm.close();
    }
  });
});

describe('the service, while PostgreSQL ends all connections again and again,', () => {
  it('reaches every outcome, and no process ends', async () => {
    const folder = scratchFolder();
    const stack = await startTestStack({ cardCreationWaitMs: 30_000, logLevel: 'error' }, { worker: false });
    const config = { ...stack.config, port: await freePort() };
    const api = await startApiProcess(config, folder);
    const worker = await startProcess(stack.config, folder, 'worker/main.ts');
    const reaper = await connectTo(ownerUrlOf(config.databaseUrl));
    try {
      const cases = Object.values(CASES).filter((kind) => !('resolve' in kind));
      const operations = await Promise.all(
        cases.flatMap((kind) => [prepareIssuance(kind, stack), prepareTopUp(kind, stack)]),
      );
      const statuses = new Set<number>();
      const answers = Promise.all(
        operations.map((operation) =>
          untilAnswered(async () => {
            const answer = await askAt(`http://${config.host}:${config.port}`, operation);
            statuses.add(answer.status);
            return answer;
          }),
        ),
      );
      for (let ended = 0; ended < 60; ended += await endConnections(reaper)) await sleep(50);

      const firsts = await answers;
      assert.ok(!statuses.has(500), 'an outage is no internal error');
      await Promise.all(
        operations.map((operation, index) => assertEnd(stack, operation, firsts[index] as Answer)),
      );
      await assertLedgerClean(stack);
      for (const child of [api, worker]) {
        assert.equal(await Promise.race([child.exited, 'runs']), 'runs', child.lastLines().join('\n'));
      }
    } finally {
      await Promise.all([kill(api), kill(worker), reaper.end()]);
      await stack.stop();
    }
  });
});

async function endConnections(reaper: pg.Client): Promise<number> {
  const { rowCount } = await reaper.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid()`,
  );
  return rowCount ?? 0;
}

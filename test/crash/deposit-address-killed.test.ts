import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { freePort } from '../../dev/free-port.ts';
import { expectError } from '../support/api/answers.ts';
import { assertReplays, cutCommits } from '../support/crash/cut-commits.ts';
import { askAt } from '../support/crash/operations.ts';
import { kill, scratchFolder, startApiProcess } from '../support/crash/processes.ts';
import { TEST_TRON } from '../support/deposits/seed-deposits.ts';
import { asOwner } from '../support/postgres.ts';
import { startTestStack, type TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

const PATH = '/funding/deposit-address';

describe('POST /funding/deposit-address', () => {
  let stack: TestStack;
  const folder = scratchFolder();
  before(async () => {
    stack = await startTestStack({ logLevel: 'error', tron: TEST_TRON }, { worker: false });
  });
  after(async () => {
    await stack.stop();
  });

  it('gives out one deposit, which a retry gets, when its connection to PostgreSQL is cut before its COMMIT, and then after it', async () => {
    const partner = await stack.createPartner();
    const cuts = cutCommits();
    const list = async () =>
      (await partner.call('GET', '/funding/deposits', { mode: 'live' })).json.data.length;
    const options = { mode: 'live', body: { amount: 2_500 }, idempotencyKey: randomUUID() } as const;
    const answer = await assertReplays(cuts, {
      send: () => partner.call('POST', PATH, options),
      parameter: options.idempotencyKey,
      left: list,
      leaves: 1,
    });
    cuts.undo();
    const { json } = await partner.call('GET', '/funding/deposits', { mode: 'live' });
    assert.deepEqual(json.data, [answer.json]);
  });

  it('delays only its own key when its process freezes before the COMMIT, and a retry makes the deposit once PostgreSQL has ended the transaction', async () => {
    const partner = await stack.createPartner();
    const body = { amount: 2_500 };
    const post = (idempotencyKey?: string) =>
      partner.call('POST', PATH, { mode: 'live', body, ...(idempotencyKey && { idempotencyKey }) });
    const config = { ...stack.config, port: await freePort() };
    const api = await startApiProcess(config, folder, {
      execArgv: ['--import', './test/support/crash/die-at-commit.ts'],
      env: { DIE_AT_COMMIT: 'freeze before 1' },
    });
    try {
      const asked = askAt(`http://${config.host}:${config.port}`, {
        mode: 'live',
        partner,
        path: PATH,
        body,
        key: 'k',
      }).catch((error: Error) => error);
      const idle = `SELECT FROM pg_stat_activity WHERE datname = current_database()
        AND state = 'idle in transaction' AND query LIKE '%INSERT INTO deposit%'`;
      const isAtIt = async () => (await asOwner(stack, idle)).length > 0;
      await until('the process stands before its COMMIT', isAtIt);
      const waiting = post('k');
      assert.equal((await post()).status, 201);
      assert.equal((await post('another')).status, 201);

      // It waits as long as for any lock, which can be too short.
      const waited = await waiting;
      const answer =
        waited.status === 201
          ? waited
          : await until('its transaction is ended', async () => {
              expectError(waited, 'unavailable');
              const again = await post('k');
              return again.status !== 503 && again;
            });
      assert.deepEqual([answer.status, answer.headers.get('idempotent-replayed')], [201, null]);
      process.kill(api.pid, 'SIGCONT');
      const late = await asked;
      assert.ok(!(late instanceof Error), String(late));
      // Its connection is gone, so it says that it doesn't know.
      assert.equal(late.status, 503, late.text);
      assert.equal((await post('k')).text, answer.text);
      const { json } = await partner.call('GET', '/funding/deposits', { mode: 'live' });
      assert.equal(json.data.length, 3);
    } finally {
      await kill(api);
    }
  });
});

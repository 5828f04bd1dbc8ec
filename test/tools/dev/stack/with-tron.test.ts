import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../../../../dev/free-port.ts';
import { scratchFolder } from '../../../support/dev/scratch.ts';
import { runStack, type StackProcess } from '../../../support/dev/stack-process.ts';
import { until } from '../../../support/until.ts';

/** The steps of one stack's life, as in stack.test.ts. */
describe('npm start -- --with-tron', () => {
  let stack: StackProcess;
  after(() => stack?.kill('SIGKILL'));
  const scratch = scratchFolder();
  let env: { DATA_DIR: string; PORT: string };
  // biome-ignore lint/suspicious/noExplicitAny: what another program would read.
  let file: any;

  const start = async () => {
    stack = runStack('start', env, ['--with-tron']);
    await stack.printed(/^ready/);
    file = JSON.parse(await readFile(join(env.DATA_DIR, 'stack.json'), 'utf8'));
    return stack.printed(/TRON node/);
  };
  const stop = () => {
    stack.kill('SIGINT');
    return stack.ended;
  };
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  const call = async (path: string, body?: unknown): Promise<any> => {
    const headers = {
      authorization: `Bearer ${file.demo.liveKey}`,
      'content-type': 'application/json',
      'idempotency-key': crypto.randomUUID(),
    };
    const init = body === undefined ? { headers } : { headers, method: 'POST', body: JSON.stringify(body) };
    const response = await fetch(`${file.apiUrl}${path}`, init);
    return response.json();
  };
  const depositConfirmed = async (amount: number) => {
    const deposit = await call('/funding/deposit-address', { amount });
    const paying = runStack('tron/main', env, ['pay', deposit.address, deposit.amount_usdt]);
    assert.equal(await paying.ended, 0, paying.lines.join('\n'));
    const confirmed = await until('the deposit is confirmed', async () => {
      const { data } = await call('/funding/deposits');
      return data.find(
        (one: { id: string; status: string }) => one.id === deposit.id && one.status === 'confirmed',
      );
    });
    assert.ok(paying.lines.includes(`transaction ${confirmed.tx_hash}`));
    return confirmed;
  };
  const hashOf = async (number: number) => {
    const response = await fetch(`${file.tronUrl}/walletsolidity/getblockbynum?num=${number}`);
    return ((await response.json()) as { blockID?: string }).blockID;
  };

  before(async () => {
    env = { DATA_DIR: join(scratch.path, 'data'), PORT: String(await freePort()) };
  });

  it('refuses what it does not know, before it starts anything', async () => {
    for (const [arg, why] of [
      ['--with-tronn', /^error: unknown option '--with-tronn'/],
      ['with-tron', /^error: too many arguments/],
    ] as const) {
      const { ended, lines } = runStack('start', env, [arg]);
      assert.equal(await ended, 1);
      assert.match(lines.join('\n'), why);
      assert.equal(existsSync(env.DATA_DIR), false);
    }
  });

  let paidHash: string | undefined;
  let paidBlock: number;

  it('shows a deposit confirmed after `npm run tron -- pay`', async () => {
    assert.ok((await start()).includes(file.tronUrl));
    const deposit = await depositConfirmed(2_500);
    assert.equal(deposit.received_amount, 2_500);
    assert.equal((await call('/balance')).available, 2_500);
    paidBlock = deposit.payments[0].block;
    paidHash = await hashOf(paidBlock);
    assert.ok(paidHash);
  });

  it('continues with the same chain after a stop', async () => {
    const { tronUrl } = file;
    assert.equal(await stop(), 0);
    await assert.rejects(fetch(tronUrl), TypeError);
    await start();
    assert.equal(file.tronUrl, tronUrl);
    assert.equal(await hashOf(paidBlock), paidHash);
    await depositConfirmed(100);
    assert.equal((await call('/balance')).available, 2_600);
    assert.equal(await stop(), 0);
  });
});

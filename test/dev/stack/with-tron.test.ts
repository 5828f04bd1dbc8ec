import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../../../dev/free-port.ts';
import { eventually } from '../support/eventually.ts';
import { runStack, type StackProcess } from '../support/run-stack.ts';
import { scratchFolder } from '../support/scratch-folder.ts';

/** The steps of one stack's life, as in stack.test.ts. */
describe('npm start -- --with-tron', function () {
  this.timeout(180_000);
  let stack: StackProcess;
  after(() => stack?.kill('SIGKILL'));
  const scratch = scratchFolder();
  let env: { DATA_DIR: string; PORT: string };
  // biome-ignore lint/suspicious/noExplicitAny: what another program would read.
  let file: any;

  const start = async (...args: string[]) => {
    stack = runStack('start', env, args);
    const ready = await stack.printed(/^ready/);
    file = JSON.parse(await readFile(join(env.DATA_DIR, 'stack.json'), 'utf8'));
    return ready;
  };
  const stop = () => {
    stack.kill('SIGINT');
    return stack.ended;
  };
  const call = async (path: string, body?: unknown) => {
    const headers = {
      authorization: `Bearer ${file.demo.liveKey}`,
      'content-type': 'application/json',
      'idempotency-key': crypto.randomUUID(),
    };
    const init = body === undefined ? { headers } : { headers, method: 'POST', body: JSON.stringify(body) };
    const response = await fetch(`${file.apiUrl}${path}`, init);
    // biome-ignore lint/suspicious/noExplicitAny: as above.
    return { status: response.status, json: (await response.json()) as any };
  };
  const depositConfirmed = async (amount: number) => {
    const { json: deposit } = await call('/funding/deposit-address', { amount });
    const paying = runStack('tron/main', env, ['pay', deposit.address, deposit.amount_usdt]);
    assert.equal(await paying.ended, 0, paying.lines.join('\n'));
    const confirmed = await eventually(async () => {
      const { json } = await call('/funding/deposits');
      return json.data.find(
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

  it('refuses TRON variables beside the flag, and flags there are not, before it starts anything', async () => {
    const beside = runStack('start', { ...env, TRON_NETWORK: 'nile' }, ['--with-tron']);
    assert.equal(await beside.ended, 1);
    assert.match(beside.lines.join('\n'), /TRON_NETWORK: --with-tron sets it/);
    for (const args of [['--with-tronn'], ['with-tron'], ['--with-tron=yes']]) {
      const wrong = runStack('start', env, args);
      assert.equal(await wrong.ended, 1);
      assert.match(wrong.lines.join('\n'), /^error: /);
    }
  });

  let paidHash: string | undefined;
  let paidBlock: number;

  it('shows a deposit confirmed after `npm run tron -- pay`', async () => {
    assert.ok((await start('--with-tron')).includes(file.tronUrl));
    const deposit = await depositConfirmed(2_500);
    assert.equal(deposit.received_amount, 2_500);
    assert.equal((await call('/balance')).json.available, 2_500);
    paidBlock = deposit.payments[0].block;
    paidHash = await hashOf(paidBlock);
    assert.ok(paidHash);
  });

  it('goes on with the same chain after a stop', async () => {
    const { tronUrl } = file;
    assert.equal(await stop(), 0);
    await assert.rejects(fetch(tronUrl), TypeError);
    await start('--with-tron');
    assert.equal(file.tronUrl, tronUrl);
    assert.equal(await hashOf(paidBlock), paidHash);
    await depositConfirmed(100);
    assert.equal((await call('/balance')).json.available, 2_600);
    assert.equal(await stop(), 0);
  });

  it('has no deposits and tells of no node without the flag', async () => {
    assert.doesNotMatch(await start(), /TRON/);
    assert.equal('tronUrl' in file, false);
    const { status, json } = await call('/funding/deposit-address', { amount: 100 });
    assert.deepEqual([status, json.error.code], [503, 'unavailable']);
    assert.equal(await stop(), 0);
  });
});

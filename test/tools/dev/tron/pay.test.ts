import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../../../dev/free-port.ts';
import { type LocalTron, startLocalTron } from '../../../../dev/tron/local-tron.ts';
import { scratchFolder } from '../../../support/dev/scratch.ts';
import { runStack } from '../../../support/dev/stack-process.ts';

const ALICE = 'TWer2Ygk5TEheHp3TPuYeqxmB6SsGZmaL6';

describe('npm run tron -- pay', () => {
  let tron: LocalTron;
  // Before the folder goes.
  after(() => tron.stop());
  const scratch = scratchFolder();
  const runOn = async (dataDir: string, ...args: string[]) => {
    const { ended, lines } = runStack('tron/main', { DATA_DIR: dataDir }, args);
    return { code: await ended, text: lines.join('\n') };
  };
  const folderWith = (name: string, stack: object) => {
    const path = join(scratch.path, name);
    mkdirSync(path);
    const demo = { partnerId: 'p', testKey: 't', liveKey: 'l' };
    writeFileSync(join(path, 'stack.json'), JSON.stringify({ demo, ...stack }));
    return path;
  };
  const post = (body: string, type = 'application/json') =>
    fetch(`${tron.url}/dev/pay`, { method: 'POST', body, headers: { 'content-type': type } });
  let running: string;

  before(async () => {
    tron = await startLocalTron({ file: join(scratch.path, 'tron.json'), port: await freePort() });
    running = folderWith('running', { tronUrl: tron.url });
  });

  it('refuses a wrong address and a wrong amount, and names them', async () => {
    const askedFor = async (to: string, amountUsdt: string) => {
      const response = await post(JSON.stringify({ to, amountUsdt }));
      assert.equal(response.status, 400, `${to} ${amountUsdt}`);
      return ((await response.json()) as { Error: string }).Error;
    };
    for (const address of [`${ALICE.slice(0, -1)}7`, '0x00', '', `${ALICE} `])
      assert.match(await askedFor(address, '1'), /^the address must be a TRON address/);
    const amounts = ['1.1234567', '1,5', '0', '0.000000', '1e3', '', 'x', '.5', '1.', '-1', '1'.repeat(16)];
    for (const amount of amounts) assert.match(await askedFor(ALICE, amount), /^the amount must be/, amount);

    assert.deepEqual(await runOn(running, 'pay', ALICE, '1.1234567'), {
      code: 1,
      text: 'the amount must be a decimal with at most 6 places, for instance 25 or 25.00',
    });
    for (const args of [['pay', ALICE], ['pay', ALICE, '1', '2'], ['send'], ['pay', ALICE, '1', '--fast']])
      assert.equal((await runOn(running, ...args)).code, 1, args.join());
  });

  it('accepts no payment that a web page could send', async () => {
    const body = JSON.stringify({ to: ALICE, amountUsdt: '1' });
    for (const type of ['text/plain', 'application/x-www-form-urlencoded'])
      assert.equal((await post(body, type)).status, 415);
    assert.equal((await post('{')).status, 400);
  });
});

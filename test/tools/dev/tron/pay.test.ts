import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { freePort } from '../../../../dev/free-port.ts';
import { type LocalTron, startLocalTron } from '../../../../dev/tron/local-tron.ts';
import { deriveDepositAddress } from '../../../../platform/crypto/tron-address.ts';
import { scratchFolder } from '../../../support/dev/scratch.ts';
import { runStack } from '../../../support/dev/stack-process.ts';
import { until } from '../../../support/until.ts';

const ALICE = 'TWer2Ygk5TEheHp3TPuYeqxmB6SsGZmaL6';

describe('npm run tron -- pay', () => {
  let tron: LocalTron;
  // Before the folder goes.
  after(() => tron.stop());
  const scratch = scratchFolder();
  const run = (...args: string[]) => runOn(scratch.path, ...args);
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
  let running: string;

  before(async () => {
    tron = await startLocalTron({ file: join(scratch.path, 'tron.json'), port: await freePort() });
    running = folderWith('running', { tronUrl: tron.url });
  });

  it('pays, and prints the transaction and its block', async () => {
    const { code, text } = await runOn(running, 'pay', ALICE, '12.3456');
    assert.equal(code, 0, text);
    const [, txId, block, solid] =
      /transaction ([0-9a-f]{64})\nblock (\d+), solid with block (\d+)/.exec(text) ?? [];
    assert.ok(Number(solid) > Number(block), text);
    // biome-ignore lint/suspicious/noExplicitAny: what a client would read.
    const info: any = await until('the payment has its transaction info', async () => {
      const response = await fetch(`${tron.url}/walletsolidity/gettransactioninfobyid?value=${txId}`);
      const json = (await response.json()) as { id?: string };
      return json.id === txId && json;
    });
    assert.equal(info.blockNumber, Number(block));
    assert.equal(Number(`0x${info.log[0].data}`), 12_345_600);
  });

  it('refuses a wrong address and a wrong amount, and names them', async () => {
    const askedFor = async (to: unknown, amountUsdt: unknown) => {
      const headers = { 'content-type': 'application/json' };
      const body = JSON.stringify({ to, amountUsdt });
      const response = await fetch(`${tron.url}/dev/pay`, { method: 'POST', body, headers });
      assert.equal(response.status, 400, body);
      return ((await response.json()) as { Error: string }).Error;
    };
    for (const address of [`${ALICE.slice(0, -1)}7`, '0x00', '', `${ALICE} `])
      assert.match(await askedFor(address, '1'), /^the address must be a TRON address/);
    for (const amount of [
      '1.1234567',
      '1,5',
      '0',
      '0.000000',
      '1e3',
      '',
      'x',
      '.5',
      '1.',
      '-1',
      '1'.repeat(16),
    ])
      assert.match(await askedFor(ALICE, amount), /^the amount must be/, amount);

    assert.deepEqual(await runOn(running, 'pay', ALICE, '1.1234567'), {
      code: 1,
      text: 'the amount must be a decimal with at most 6 places, for instance 25 or 25.00',
    });
    for (const args of [['pay', ALICE], ['pay', ALICE, '1', '2'], ['send'], ['pay', ALICE, '1', '--fast']])
      assert.equal((await runOn(running, ...args)).code, 1, args.join());
  });

  it('says what to do if no stack, or none with a TRON node, is running', async () => {
    assert.match((await run('pay', ALICE, '1')).text, /run `npm start -- --with-tron`/);
    const without = folderWith('without', {});
    assert.match((await runOn(without, 'pay', ALICE, '1')).text, /run `npm start -- --with-tron`/);
    const stopped = folderWith('stopped', { tronUrl: `http://127.0.0.1:${await freePort()}` });
    assert.match(
      (await runOn(stopped, 'pay', ALICE, '1')).text,
      /make sure that `npm start -- --with-tron` runs on/,
    );
    const other = createServer((_, response) => response.end('hello')).listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const taken = folderWith('taken', { tronUrl: `http://127.0.0.1:${port}` });
    assert.match((await runOn(taken, 'pay', ALICE, '1')).text, /is not the TRON node of/);
    other.close();
  });

  it('accepts no payment that a web page could send', async () => {
    const body = JSON.stringify({ to: ALICE, amountUsdt: '1' });
    for (const type of ['text/plain', 'application/x-www-form-urlencoded']) {
      const response = await fetch(`${tron.url}/dev/pay`, {
        method: 'POST',
        body,
        headers: { 'content-type': type },
      });
      assert.equal(response.status, 415);
    }
    const headers = { 'content-type': 'application/json' };
    const broken = await fetch(`${tron.url}/dev/pay`, { method: 'POST', body: '{', headers });
    assert.equal(broken.status, 400);
  });

  it('uses the account of the well-known mnemonic', () => {
    assert.equal(deriveDepositAddress(tron.environment.TRON_XPUB ?? '', 0).address, ALICE);
  });
});

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { HandChain } from '../../../../dev/tron/chain.ts';
import { FAKE_USDT_CONTRACT, tokenTransfer } from '../../../../dev/tron/drafts.ts';
import { type FakeNode, startFakeNode } from '../../../../dev/tron/fake-node.ts';

const SCRIPT = fileURLToPath(new URL('../../../../dev/smoke-nile.ts', import.meta.url));

describe('npm run smoke:nile', () => {
  let node: FakeNode;
  afterEach(() => node.stop());
  const run = () =>
    new Promise<{ code: number; output: string }>((resolve) => {
      const env = {
        PATH: process.env.PATH,
        TRON_NODE_URLS: node.url,
        TRON_USDT_CONTRACT: FAKE_USDT_CONTRACT,
      };
      execFile(process.execPath, [SCRIPT], { env }, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : Number(error.code), output: stdout + stderr });
      });
    });

  it('reads ten blocks and the newest one, and says what it saw in them', async () => {
    const chain = new HandChain({ startTime: new Date(Date.now() - 600_000) });
    const payment = tokenTransfer({ to: 'TWer2Ygk5TEheHp3TPuYeqxmB6SsGZmaL6', valueMicroUsdt: 1n });
    while (chain.head.timeMs < Date.now()) chain.mine([payment]);
    node = await startFakeNode(chain);
    const { code, output } = await run();
    assert.equal(code, 0, output);
    assert.equal(
      output.match(/^block \d+ [0-9a-f]{12}… \d+ s old, 1 USDT transfers, by 127\.0\.0\.1:\d+$/gm)?.length,
      10,
    );
    assert.match(
      output,
      new RegExp(`^newest block: ${chain.headNumber()}, not solid yet, with 1 USDT transfers$`, 'm'),
    );
    assert.match(output, /^node 127\.0\.0\.1:\d+: in_use$/m);
  });
});

import assert from 'node:assert/strict';
import { createTronChain } from '../../../../deposits/tron/create-tron-chain.ts';
import { keyHeaders } from '../../../../deposits/tron/node-api.ts';
import { ChainUnreadable } from '../../../../deposits/tron/tron-chain.ts';
import { HandChain } from '../../../../dev/tron/chain.ts';
import { FAKE_USDT_CONTRACT } from '../../../../dev/tron/drafts.ts';
import { startFakeNode } from '../../../../dev/tron/fake-node.ts';
import { keptLog, NEVER } from '../../../support/adapters/chain-of-nodes.ts';

describe('TRON_API_KEY', () => {
  it('is sent to TronGrid alone, and never in clear over the network', () => {
    const isSent = (url: string) => keyHeaders(url, 'a-key')['TRON-PRO-API-KEY'] === 'a-key';
    for (const [url, expected] of [
      ['https://api.trongrid.io', true],
      ['https://nile.trongrid.io/', true],
      ['https://api.shasta.trongrid.io', true],
      ['http://api.trongrid.io', false],
      ['http://127.0.0.1:8090', false],
      ['https://trongrid.io@evil.example', false],
      ['https://api.trongrid.io.evil.example', false],
      ['https://eviltrongrid.io', false],
      ['https://evil.example/trongrid.io', false],
    ] as const)
      assert.equal(isSent(url), expected, url);
    assert.deepEqual(keyHeaders('https://api.trongrid.io', null), {});
  });

  it('is not sent to another node, which the log warns of, and a key in a URL appears in no error, log or name', async () => {
    const node = await startFakeNode(new HandChain());
    const { log, logger } = keptLog();
    const url = `${node.url}/key-in-the-path`;
    const config = {
      nodes: [{ full: url, solidity: url }],
      confirmingNodes: 1,
      apiKey: 'key-of-trongrid',
      usdtContract: FAKE_USDT_CONTRACT,
    };
    const tron = createTronChain(config, logger);
    const error = await tron.readBlocks({ number: 0, hash: null }, 1, NEVER).catch((thrown) => thrown);
    const hint = await tron.readUnsolid(null, NEVER);
    tron.close();
    await node.stop();
    assert.ok(error instanceof ChainUnreadable && hint === null);
    assert.equal(node.lastHeaders['tron-pro-api-key'], undefined);
    assert.match(String(log[0]?.msg), /^TRON_API_KEY is not used: no node/);
    const said = [String(error.stack), JSON.stringify([error, error.cause, log, tron.state()])].join();
    assert.match(said, /http_404/);
    assert.doesNotMatch(said, /key-in-the-path|key-of-trongrid/);
  });
});

import assert from 'node:assert/strict';
import { TronWeb, utils } from 'tronweb';
import { HandChain } from '../../../../dev/tron/chain.ts';
import { tokenTransfer } from '../../../../dev/tron/drafts.ts';
import { startFakeNode } from '../../../../dev/tron/fake-node.ts';

describe('a fake TRON node', () => {
  it("can be read by TRON's own client", async () => {
    const chain = new HandChain({ solidAfterBlocks: 2 });
    const node = await startFakeNode(chain);
    try {
      chain.mine([tokenTransfer({ to: 'TWer2Ygk5TEheHp3TPuYeqxmB6SsGZmaL6', valueMicroUsdt: 1n })]);
      const tronWeb = new TronWeb({ fullHost: node.url });
      const block = await tronWeb.trx.getBlockByNumber(1);
      assert.equal(block.blockID, chain.head.hash);
      const [first, ...more] = block.transactions ?? [];
      assert.equal(more.length, 0);
      assert.ok(first !== undefined && utils.transaction.txCheck(first));
      const isConnected = await tronWeb.isConnected();
      assert.deepEqual(isConnected, { fullNode: true, solidityNode: true, eventServer: false });
    } finally {
      await node.stop();
    }
  });
});

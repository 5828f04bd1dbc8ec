import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ChainUnreadable } from '../../../../deposits/tron/tron-chain.ts';
import { tokenTransfer } from '../../../../dev/tron/drafts.ts';
import type { FakeNode } from '../../../../dev/tron/fake-node.ts';
import {
  ALICE,
  type ChainOfNodes,
  NEVER,
  nameOf,
  readUpTo,
  startChainOfNodes,
} from '../../../support/adapters/chain-of-nodes.ts';
import { until } from '../../../support/until.ts';

const START = { number: 0, hash: null };

describe('TRON nodes that disagree', () => {
  let all: ChainOfNodes;
  afterEach(() => all.stop());
  const mine = (count: number) => {
    for (let made = 0; made < count; made++)
      all.chain.mine([tokenTransfer({ to: ALICE, valueMicroUsdt: 1n })]);
  };
  /** Two nodes that show this many blocks, of which the last two are not solid. */
  const start = async (count: number) => {
    all = await startChainOfNodes([{}, {}]);
    mine(count);
    return all.nodes as [FakeNode, FakeNode];
  };
  const stateOf = (at: number) => all.tron.state().nodes[at];

  it('are handled by leaving a node that is 1,000 blocks behind for the next one', async () => {
    const [slow, good] = await start(1_100);
    slow.view.lagBlocks = 1_000;
    const after = { number: 1_050, hash: all.chain.block(1_050)?.hash ?? null };
    const [block] = await all.tron.readBlocks(after, 1, NEVER);
    assert.deepEqual([block?.number, block?.node], [1_051, nameOf(good)]);
    assert.deepEqual([stateOf(0)?.state, stateOf(0)?.problem], ['behind', '952_blocks_behind']);
    assert.deepEqual([all.tron.state().solidBlockNumber, all.log.length], [1_098, 1]);
    slow.view.reform();
    all.passTime(1_000);
    await until('it has caught up', async () => {
      await all.tron.readBlocks(after, 1, NEVER);
      return stateOf(0)?.state === 'in_use';
    });
  });

  it('are handled by leaving a node that has stopped for the next one', async () => {
    const [stopped, good] = await start(102);
    const taken = await readUpTo(all.tron, START, 20, 10);
    stopped.view.stopsAt = 20;
    const blocks = await readUpTo(all.tron, taken.at(-1) ?? START, 100, 10);
    assert.equal(taken[0]?.node, nameOf(stopped));
    assert.ok(blocks.length === 80 && blocks.every(({ node }) => node === nameOf(good)));
    await until('it is known to be behind', async () => {
      await all.tron.readBlocks(blocks.at(-1) ?? START, 1, NEVER);
      return stateOf(0)?.state === 'behind';
    });
  });

  it('are handled by leaving a node that stays far behind for the next one', async () => {
    const [slow, good] = await start(1_100);
    slow.view.lagBlocks = 500;
    const [first] = await readUpTo(all.tron, START, 1);
    assert.equal(first?.node, nameOf(slow));
    let number = 1;
    await until('the one with newer blocks is read from', async () => {
      mine(1);
      const [next] = await all.tron.readBlocks({ number, hash: null }, 1, NEVER);
      number = next?.number ?? number;
      return next?.node === nameOf(good);
    });
    assert.ok(number < 500, `only at block ${number}`);
  });

  it('are handled by leaving one that takes seconds a call for a faster one, and trying it again later', async () => {
    const [slow, fast] = await start(102);
    let callMs = 0;
    Object.defineProperty(slow, 'latencyMs', {
      get: () => {
        all.passTime(callMs);
        return 0;
      },
    });
    /** Reads the block after that one. @returns the node that it came from */
    const readAfter = async (number: number, ifSlowMs = 0) => {
      callMs = ifSlowMs;
      const [read] = await all.tron.readBlocks({ number, hash: null }, 1, NEVER);
      callMs = 0;
      return read?.node;
    };
    assert.equal(await readAfter(0, 4_900), nameOf(slow));
    for (let number = 1; number < 30; number++) assert.equal(await readAfter(number), nameOf(fast));
    assert.deepEqual([stateOf(0)?.state, stateOf(0)?.problem, all.log], ['standby', null, []]);
    all.passTime(600_000);
    assert.equal(await readAfter(30, 4_900), nameOf(slow));
    assert.equal(await readAfter(31), nameOf(fast));
    all.passTime(600_000);
    for (let number = 32; number < 40; number++) assert.equal(await readAfter(number), nameOf(slow));
  });

  it('do not stop the reading when one of them claims newer blocks than there are', async () => {
    const [good, liar] = await start(62);
    const alsoBefore = await readUpTo(all.tron, START, 1);
    liar.view.claimedBlocks = 1_000_000;
    const blocks = await readUpTo(all.tron, alsoBefore.at(-1) ?? START, 60, 1);
    assert.equal(blocks.length, 59);
    const last = blocks.at(-1) ?? START;
    await until('it is found out', async () => {
      assert.deepEqual(await all.tron.readBlocks(last, 10, NEVER), []);
      return stateOf(1)?.problem === 'too_far_ahead' && all.tron.state().solidBlockNumber === 60;
    });
    mine(1);
    assert.equal((await readUpTo(all.tron, last, 61))[0]?.node, nameOf(good));
  });

  it('are not reported when they differ by a few blocks, as nodes behind one address do', async () => {
    const [slow] = await start(12);
    slow.view.lagBlocks = 5;
    assert.equal((await readUpTo(all.tron, START, 10)).length, 10);
    assert.deepEqual([stateOf(0)?.problem, all.log], [null, []]);
  });

  it('are read only where a block follows from the last one', async () => {
    const [liar, good] = await start(32);
    const taken = await readUpTo(all.tron, START, 10);
    liar.view.forksAt = 5;
    const blocks = await readUpTo(all.tron, taken.at(-1) ?? START, 30);
    for (const { node, number, hash } of blocks)
      assert.deepEqual([node, hash], [nameOf(good), all.chain.block(number)?.hash]);
    assert.deepEqual([stateOf(0)?.state, stateOf(0)?.problem], ['contradicting', 'other_chain']);
    assert.equal(all.log.length, 1);
    assert.deepEqual([all.log[0]?.node, all.log[0]?.state], [nameOf(liar), 'contradicting']);
  });

  it('are caught even at the newest block, when nothing follows it yet', async () => {
    const [liar, good] = await start(12);
    const [last = START] = (await readUpTo(all.tron, START, 10)).slice(-1);
    liar.view.forksAt = 10;
    assert.deepEqual(await all.tron.readBlocks(last, 10, NEVER), []);
    assert.deepEqual([stateOf(0)?.state, all.tron.state().node], ['contradicting', nameOf(good)]);
  });

  it('stop the scan while none has a block that follows, and it goes on once one does', async () => {
    await start(12);
    const elsewhere = { number: 3, hash: 'ab'.repeat(32) };
    await assert.rejects(all.tron.readBlocks(elsewhere, 10, NEVER), (error) => {
      assert.ok(error instanceof ChainUnreadable);
      assert.match(error.message, /other_chain.*other_chain/);
      return true;
    });
    assert.equal((await readUpTo(all.tron, { number: 3, hash: null }, 10)).length, 7);
  });

  it('cannot pass off the infos of other transactions as those of a block', async () => {
    const foreign = [{ id: 'ab'.repeat(32), blockNumber: 1, receipt: { result: 'SUCCESS' } }];
    const alsoServe = (request: IncomingMessage, _body: string, response: ServerResponse) => {
      if (!request.url?.endsWith('gettransactioninfobyblocknum')) return false;
      response.end(JSON.stringify(foreign));
      return true;
    };
    all = await startChainOfNodes([{ alsoServe }, {}]);
    mine(3);
    const [read] = await all.tron.readBlocks(START, 1, NEVER);
    assert.deepEqual([read?.node, read?.transfers.length], [nameOf(all.nodes[1]), 1]);
    assert.deepEqual([stateOf(0)?.state, stateOf(0)?.problem], ['contradicting', 'foreign_infos']);
  });
});

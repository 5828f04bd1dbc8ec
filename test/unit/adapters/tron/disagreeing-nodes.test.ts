import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { ChainUnreadable } from '../../../../adapters/tron/tron-chain.ts';
import { tokenTransfer } from '../../../../dev/tron/drafts.ts';
import {
  ALICE,
  BOB,
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
    return all.chain.head;
  };
  const stateOf = (at: number) => all.tron.state().nodes[at];

  it('are handled by leaving a node that is 1,000 blocks behind for the next one', async () => {
    all = await startChainOfNodes([{}, {}]);
    mine(1_100);
    const [slow, good] = all.nodes;
    assert.ok(slow);
    slow.view.lagBlocks = 1_000;
    const after = { number: 1_050, hash: all.chain.block(1_050)?.hash ?? null };
    const [block] = await all.tron.readBlocks(after, 1, NEVER);
    assert.deepEqual([block?.number, block?.node], [1_051, nameOf(good)]);
    assert.deepEqual([stateOf(0)?.state, stateOf(0)?.problem], ['behind', '952_blocks_behind']);
    assert.deepEqual([all.tron.state().solidBlockNumber, all.log.length], [1_098, 1]);
    slow.view.reform();
    await until('it has caught up', async () => {
      await all.tron.readBlocks(after, 1, NEVER);
      return stateOf(0)?.state === 'in_use';
    });
  });

  it('are handled by leaving a node that has stopped for the next one', async () => {
    all = await startChainOfNodes([{}, {}]);
    mine(102);
    const [stopped, good] = all.nodes;
    assert.ok(stopped);
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
    all = await startChainOfNodes([{}, {}]);
    mine(1_100);
    const [slow, good] = all.nodes;
    assert.ok(slow);
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

  it('do not stop the reading when one of them claims newer blocks than there are', async () => {
    all = await startChainOfNodes([{}, {}]);
    mine(62);
    const [good, liar] = all.nodes;
    assert.ok(liar);
    const alsoBefore = await readUpTo(all.tron, START, 1);
    const { newestNumber, blockJson } = liar.view;
    liar.view.newestNumber = (isSolid) => newestNumber.call(liar.view, isSolid) + 1_000_000;
    liar.view.blockJson = (number, isSolid) =>
      number < 1_000_000
        ? blockJson.call(liar.view, number, isSolid)
        : JSON.stringify({
            blockID: number.toString(16).padStart(16, '0') + 'ab'.repeat(24),
            block_header: { raw_data: { number, parentHash: 'ab'.repeat(32), timestamp: Date.now() } },
          });
    const blocks = await readUpTo(all.tron, alsoBefore.at(-1) ?? START, 60, 1);
    assert.equal(blocks.length, 59);
    liar.faults.add({ fault: 'empty object', path: 'getblockbynum' });
    const last = blocks.at(-1) ?? START;
    await until('it is found out', async () => {
      assert.deepEqual(await all.tron.readBlocks(last, 10, NEVER), []);
      return stateOf(1)?.problem === 'block_incomplete' && all.tron.state().solidBlockNumber === 60;
    });
    mine(1);
    assert.equal((await readUpTo(all.tron, last, 61))[0]?.node, nameOf(good));
  });

  it('are not reported when they differ by a few blocks, as nodes behind one address do', async () => {
    all = await startChainOfNodes([{}, {}]);
    mine(12);
    const [slow] = all.nodes;
    assert.ok(slow);
    slow.view.lagBlocks = 5;
    assert.equal((await readUpTo(all.tron, START, 10)).length, 10);
    assert.deepEqual([stateOf(0)?.problem, all.log], [null, []]);
  });

  it('are read only where a block follows from the last one', async () => {
    all = await startChainOfNodes([{}, {}]);
    mine(32);
    const [liar, good] = all.nodes;
    assert.ok(liar);
    const taken = await readUpTo(all.tron, START, 10);
    liar.view.forksAt = 5;
    const blocks = await readUpTo(all.tron, taken.at(-1) ?? START, 30);
    assert.ok(
      blocks.every(
        ({ node, number, hash }) => node === nameOf(good) && hash === all.chain.block(number)?.hash,
      ),
    );
    assert.deepEqual([stateOf(0)?.state, stateOf(0)?.problem], ['contradicting', 'other_chain']);
    assert.equal(all.log.length, 1);
    assert.deepEqual([all.log[0]?.node, all.log[0]?.state], [nameOf(liar), 'contradicting']);
  });

  it('are caught even at the newest block, when nothing follows it yet', async () => {
    all = await startChainOfNodes([{}, {}]);
    const head = mine(12);
    const [last] = (await readUpTo(all.tron, START, 10)).slice(-1);
    assert.equal(head.number, 12);
    const [liar, good] = all.nodes;
    assert.ok(liar && last);
    liar.view.forksAt = 10;
    assert.deepEqual(await all.tron.readBlocks(last, 10, NEVER), []);
    assert.deepEqual([stateOf(0)?.state, all.tron.state().node], ['contradicting', nameOf(good)]);
  });

  it('stop the scan while none has a block that follows, and it goes on once one does', async () => {
    all = await startChainOfNodes([{}, {}]);
    mine(12);
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

describe('a payment that the other nodes are asked about', () => {
  let all: ChainOfNodes;
  afterEach(() => all.stop());
  const payment = tokenTransfer({ to: ALICE, valueMicroUsdt: 25_000_000n });
  const read = async () => {
    const [block] = await all.tron.readBlocks(START, 1, NEVER);
    assert.ok(block);
    return { block, ask: () => all.tron.findDenied(block, block.transfers, NEVER) };
  };

  it('is denied by a node that has the block without it, and the node is named', async () => {
    all = await startChainOfNodes([{}, {}, {}]);
    all.chain.mine([payment, payment]);
    all.chain.solidify();
    const [liar, honest] = all.nodes;
    const forged = liar?.view.forge(1, tokenTransfer({ to: BOB, valueMicroUsdt: 7_000_000n }));
    const { block, ask } = await read();
    assert.deepEqual([block.node, block.transfers.length], [nameOf(liar), 3]);
    const denied = await ask();
    assert.deepEqual(
      [...denied.keys()].map(({ txHash }) => txHash),
      [forged?.id],
    );
    assert.ok(all.nodes.slice(1).some((node) => [...denied.values()].includes(nameOf(node))));
    const state = all.tron.state().nodes[1];
    assert.deepEqual(
      [state?.name, state?.state, state?.problem],
      [nameOf(honest), 'contradicting', 'denies_payment'],
    );
  });

  it('is denied if a node has another amount, another recipient or another block', async () => {
    all = await startChainOfNodes([{}, {}]);
    const block = all.chain.mine([payment]);
    all.chain.solidify();
    const [, other] = all.nodes;
    assert.ok(other);
    const lies = [
      () => other.view.hideLogs(block.transactions[0]?.id ?? ''),
      () =>
        other.view.rewrite(1, (all) =>
          all.map((one) => one.altered(tokenTransfer({ to: ALICE, valueMicroUsdt: 1n }))),
        ),
      () =>
        other.view.rewrite(1, (all) =>
          all.map((one) => one.altered(tokenTransfer({ to: BOB, valueMicroUsdt: 25_000_000n }))),
        ),
      () => {
        other.view.forksAt = 1;
      },
    ];
    for (const lie of lies) {
      other.view.reform();
      lie();
      const { block: shown, ask } = await read();
      assert.deepEqual([...(await ask())], [[shown.transfers[0], nameOf(other)]]);
    }
    other.view.reform();
    const { ask } = await read();
    assert.equal((await ask()).size, 0);
  });

  const faults = [
    'overloaded',
    'empty list',
    'empty object',
    'truncated',
    'hang',
    'forbidden',
    'lite',
  ] as const;
  for (const fault of faults) {
    it(`is not denied by a node with the fault "${fault}"`, async () => {
      all = await startChainOfNodes([{}, {}], { timings: { requestTimeoutMs: 1_000 } });
      all.chain.mine([payment]);
      all.chain.solidify();
      const { ask } = await read();
      all.nodes[1]?.faults.add({ fault });
      assert.equal((await ask()).size, 0);
      assert.ok([...(all.nodes[1]?.calls.values() ?? [])].length > 0);
    });
  }

  it('is not denied by a node that lacks the block, or some of its infos', async () => {
    all = await startChainOfNodes([{}, {}]);
    const mined = all.chain.mine([payment]);
    all.chain.solidify();
    const { ask } = await read();
    const [, other] = all.nodes;
    assert.ok(other);
    other.view.lagBlocks = 1;
    assert.equal((await ask()).size, 0);
    other.view.reform();
    other.view.dropInfo(mined.transactions[0]?.id ?? '');
    assert.equal((await ask()).size, 0);
    assert.ok((other.calls.get('/walletsolidity/gettransactioninfobyblocknum') ?? 0) >= 1);
  });

  it('waits for a node that is about to get the block, which may then deny it', async () => {
    all = await startChainOfNodes([{}, {}], { timings: { corroborationMs: 10_000 } });
    all.chain.mine([payment]);
    all.chain.mine();
    all.chain.solidify();
    const [liar, honest] = all.nodes;
    assert.ok(liar && honest);
    const forged = liar.view.forge(1, tokenTransfer({ to: BOB, valueMicroUsdt: 7_000_000n }));
    honest.view.lagBlocks = 10;
    const { ask } = await read();
    const denied = ask();
    while (!honest.calls.has('/walletsolidity/getblockbynum')) await sleep(5);
    honest.view.reform();
    assert.deepEqual(
      [...(await denied)].map(([{ txHash }, by]) => [txHash, by]),
      [[forged?.id, nameOf(honest)]],
    );
  });

  it('is not delayed by a node that hangs', async () => {
    all = await startChainOfNodes([{}, {}], { timings: { corroborationMs: 200, requestTimeoutMs: 600_000 } });
    all.chain.mine([payment]);
    all.chain.solidify();
    const { ask } = await read();
    all.nodes[1]?.faults.add({ fault: 'hang' });
    assert.equal((await ask()).size, 0);
    assert.equal(all.tron.state().nodes[1]?.problem, 'timeout');
  });

  it('is accepted if there is no other node to ask', async () => {
    all = await startChainOfNodes();
    all.chain.mine([payment]);
    all.chain.solidify();
    const { ask } = await read();
    assert.equal((await ask()).size, 0);
    assert.equal(all.nodes[0]?.calls.get('/walletsolidity/getblockbynum'), undefined);
  });
});

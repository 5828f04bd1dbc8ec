import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ChainUnreadable, type SolidBlock } from '../../../../deposits/tron/tron-chain.ts';
import { HandChain } from '../../../../dev/tron/chain.ts';
import { tokenTransfer } from '../../../../dev/tron/drafts.ts';
import { answerCall, type FakeNode } from '../../../../dev/tron/fake-node.ts';
import { NodeView } from '../../../../dev/tron/node-view.ts';
import {
  ALICE,
  ALICE_HASH,
  BOB,
  type ChainOfNodes,
  NEVER,
  nameOf,
  readUpTo,
  startChainOfNodes,
} from '../../../support/adapters/chain-of-nodes.ts';
import { column } from '../../../support/column.ts';
import { until } from '../../../support/until.ts';

const START = { number: 0, hash: null };
const payment = tokenTransfer({ to: ALICE, valueMicroUsdt: 25_000_000n });
const forgery = tokenTransfer({ to: BOB, valueMicroUsdt: 7_000_000n });

const startConfirming = (count: number) =>
  startChainOfNodes(
    Array.from({ length: count }, () => ({})),
    { confirmingNodes: 2, timings: { confirmationMs: 2_000 } },
  );

describe('two nodes that have to agree', () => {
  let all: ChainOfNodes;
  afterEach(() => all.stop());
  const start = async (count: number) => {
    all = await startConfirming(count);
    return all.nodes as [FakeNode, FakeNode, FakeNode];
  };
  const read = (after: { number: number; hash: string | null } = START, atMost = 100) =>
    all.tron.readBlocks(after, atMost, NEVER);
  const problemOf = (node: FakeNode) =>
    all.tron.state().nodes.find(({ name }) => name === nameOf(node))?.problem;
  const isTrue = (block: SolidBlock) => block.hash === all.chain.block(block.number)?.hash;
  const mine = (count: number) => {
    for (let made = 0; made < count; made++) all.chain.mine([payment]);
  };

  /** Takes the first ten blocks. @returns the last of them */
  const takeTen = async () => (await readUpTo(all.tron, START, 10)).at(-1) ?? START;
  const assertReadsOn = async (last: { number: number; hash: string | null }) => {
    const blocks = await readUpTo(all.tron, last, 30);
    assert.ok(blocks.length === 20 && blocks.every(isTrue));
    return blocks;
  };

  it('both show each transfer of a block', async () => {
    const [one, two] = await start(3);
    mine(12);
    const blocks = await readUpTo(all.tron, START, 10);
    assert.ok(blocks.length === 10 && blocks.every(isTrue));
    for (const { transfers } of blocks)
      assert.deepEqual(column(transfers, 'shownBy'), [[nameOf(one), nameOf(two)]]);
    assert.deepEqual(column(all.tron.state().nodes, 'state'), ['in_use', 'in_use', 'standby']);
  });

  it('are waited for: a block that only one of them has is not taken', async () => {
    const [one, two] = await start(2);
    mine(12);
    two.view.lagBlocks = 4;
    assert.deepEqual(column(await read(), 'number'), [1, 2, 3, 4, 5, 6]);
    const sixth = { number: 6, hash: all.chain.block(6)?.hash ?? null };
    assert.deepEqual(await read(sixth), []);
    assert.deepEqual([problemOf(one), problemOf(two), all.log], [null, null, []]);
    assert.match(all.tron.state().nodes[0]?.says ?? '', /^block 7 is 0000000000000007/);
    assert.equal(all.tron.state().nodes[1]?.says, 'nothing after block 6');
    two.view.reform();
    assert.equal((await readUpTo(all.tron, sixth, 10)).length, 4);
    assert.equal(all.tron.state().nodes[0]?.says, null);
  });

  it('do not take a block that one of them shows before it is solid, and follow the fork that replaces it', async () => {
    const [liar] = await start(3);
    mine(11);
    const lost = all.chain.mine([forgery]);
    liar.view.unsolidBlocks = 2;
    const taken = await readUpTo(all.tron, START, 10);
    assert.ok(taken.every(isTrue));
    const last = taken.at(-1) ?? START;
    assert.deepEqual([last.number, await read(last)], [10, []]);
    all.chain.fork(2, [[], [payment]]);
    all.chain.solidify();
    liar.view.unsolidBlocks = 0;
    const next = await readUpTo(all.tron, last, 12);
    assert.ok(next.every(isTrue) && next.every(({ hash }) => hash !== lost.hash));
  });

  it('name one of three whose blocks are others, and read on without it', async () => {
    const [liar, ...honest] = await start(3);
    mine(32);
    const last = await takeTen();
    // They link to the last block taken, and their hashes are right.
    liar.view.forge(12, forgery);
    liar.view.forksAt = 11;
    const blocks = await assertReadsOn(last);
    const shownBy = blocks.flatMap(({ transfers }) => transfers.map((one) => one.shownBy.toSorted().join()));
    assert.deepEqual(new Set(shownBy), new Set([honest.map(nameOf).sort().join()]));
    assert.equal(problemOf(liar), 'other_chain');
    assert.deepEqual(
      all.log.map(({ node, state }) => [node, state]),
      [[nameOf(liar), 'contradicting']],
    );
  });

  it('take nothing while they contradict each other, and say what each has', async () => {
    const [liar, honest] = await start(2);
    mine(32);
    const last = await takeTen();
    liar.view.forksAt = 11;
    await assert.rejects(read(last), (error) => {
      assert.ok(error instanceof ChainUnreadable);
      assert.match(error.message, /fewer than 2 TRON nodes agree on block 11/);
      assert.ok(error.message.includes(`${nameOf(honest)}: block 11 is ${all.chain.block(11)?.hash}`));
      return true;
    });
    liar.view.reform();
    await assertReadsOn(last);
  });

  it('do not count one whose blocks do not have the hash of their header', async () => {
    const [liar, ...honest] = await start(3);
    mine(12);
    const { blockJson } = liar.view;
    liar.view.blockJson = (...asked) =>
      blockJson.apply(liar.view, asked)?.replace('"timestamp":1', '"timestamp":2') ?? null;
    const blocks = await readUpTo(all.tron, START, 10);
    assert.ok(blocks.every(isTrue));
    assert.equal(problemOf(liar), 'wrong_hash');
    assert.deepEqual(column(all.tron.state().nodes, 'state'), ['contradicting', 'in_use', 'in_use']);
    assert.ok(honest.every((node) => problemOf(node) === null));
  });

  it('do not count one that claims a height far above all others', async () => {
    const [, liar] = await start(3);
    mine(32);
    const last = await takeTen();
    liar.view.claimedBlocks = 1_000_000;
    const blocks = await assertReadsOn(last);
    await until('all are heard', async () => {
      assert.deepEqual(await read(blocks.at(-1)), []);
      return problemOf(liar) === 'too_far_ahead';
    });
    assert.equal(all.tron.state().solidBlockNumber, 30);
  });

  it('wait for the other one if one is dead, and go on once it is back', async () => {
    const [, dead] = await start(2);
    mine(12);
    const last = await takeTen();
    const revive = dead.faults.add({ fault: 'disconnect' });
    mine(5);
    await until('it is known to be dead', async () => {
      await assert.rejects(read(last), /fewer than 2 TRON nodes agree on block 11/);
      return problemOf(dead) === 'disconnected';
    });
    revive();
    assert.equal((await readUpTo(all.tron, last, 15)).length, 5);
  });

  it('need not answer at the same time', async () => {
    const [one, two] = await start(2);
    mine(3);
    const last = (await readUpTo(all.tron, START, 1))[0] ?? START;
    mine(1);
    const reviveTwo = two.faults.add({ fault: 'disconnect' });
    await assert.rejects(read(last), ChainUnreadable);
    reviveTwo();
    one.faults.add({ fault: 'disconnect' });
    assert.deepEqual(column(await readUpTo(all.tron, last, 2), 'number'), [2]);
  });

  const findTwentieth = () =>
    all.tron.findLastBlockBefore(new Date((all.chain.block(20)?.timeMs ?? 0) + 1), NEVER);
  const hour = (ago: number) => new Date(Date.now() - ago * 3_600_000);
  const OTHER_NETWORKS: [string, HandChain][] = [
    ['older', new HandChain({ startTime: hour(9), everyMs: 3_600_000 })],
    ['younger', new HandChain({ startTime: hour(0.1), everyMs: 3_000 })],
  ];
  for (const [age, network] of OTHER_NETWORKS)
    it(`begin where the chain was, even if the first of three is on another network, which is ${age}`, async () => {
      network.mineMany(9);
      const elsewhere = new NodeView(network, 'elsewhere');
      elsewhere.unsolidBlocks = 9;
      const alsoServe = ({ method, url = '' }: IncomingMessage, body: string, response: ServerResponse) => {
        const call = { method, url: new URL(url, 'http://node'), body };
        response.end(answerCall(elsewhere, ['wallet', 'walletsolidity'], call));
        return true;
      };
      all = await startChainOfNodes([{ alsoServe }, {}, {}], { confirmingNodes: 2 });
      mine(1_100);
      const found = await findTwentieth();
      assert.deepEqual([found.number, found.hash], [20, all.chain.block(20)?.hash]);
      assert.ok((await readUpTo(all.tron, found, 30)).every(isTrue));
      assert.deepEqual(column(all.tron.state().nodes, 'problem').slice(1), [null, null]);
    });

  it('begin where the chain was, even if the first of three stopped long before', async () => {
    const [stopped] = await start(3);
    mine(32);
    stopped.view.stopsAt = 5;
    assert.equal((await findTwentieth()).number, 20);
  });

  it('begin at a block that both have', async () => {
    const [liar] = await start(3);
    mine(32);
    liar.view.forksAt = 5;
    const found = await findTwentieth();
    assert.deepEqual([found.number, found.hash], [20, all.chain.block(20)?.hash]);
  });
});

describe('a payment that the nodes are asked about', () => {
  let all: ChainOfNodes;
  afterEach(() => all.stop());
  const start = async (count: number) => {
    all = await startConfirming(count);
    return all.nodes as [FakeNode, FakeNode, FakeNode];
  };
  const minePayment = () => {
    const [mined] = all.chain.mine([payment]).transactions;
    all.chain.solidify();
    return mined?.id ?? '';
  };
  const ask = async () => {
    const [block] = await all.tron.readBlocks(START, 1, NEVER);
    assert.ok(block);
    const verdicts = await all.tron.confirm(block, block.transfers, NEVER);
    return block.transfers.map(({ valueMicroUsdt, toHash, shownBy }, index) => {
      const { outcome, says = [] } = verdicts[index] ?? {};
      const to = toHash === ALICE_HASH ? 'Alice' : 'Bob';
      return { to, valueMicroUsdt, shownBy, outcome, says: says.map((one) => one.says) };
    });
  };
  const problems = () => all.tron.state().nodes.map(({ problem }) => problem);

  it('is denied if one of three nodes invented it, and the node is named', async () => {
    const [liar] = await start(3);
    minePayment();
    liar.view.forge(1, forgery);
    const [true_, forged] = await ask();
    assert.deepEqual([true_?.outcome, true_?.shownBy.length], ['confirmed', 2]);
    assert.deepEqual(forged, {
      ...{ to: 'Bob', valueMicroUsdt: 7_000_000n, shownBy: [nameOf(liar)] },
      ...{ outcome: 'denied', says: ['shows it', 'denies it', 'denies it'] },
    });
    assert.deepEqual(problems(), ['invents_payment', null, null]);
  });

  const shows = (node: FakeNode, other: ReturnType<typeof tokenTransfer>) =>
    node.view.rewrite(1, (shown) => shown.map((one) => one.altered(other)));
  const hidden: [string, (node: FakeNode, txId: string) => void][] = [
    ['hides its log', (node, txId) => node.view.hideLogs(txId)],
    ['shows another amount', (node) => shows(node, tokenTransfer({ to: ALICE, valueMicroUsdt: 1n }))],
    [
      'shows another recipient',
      (node) => shows(node, tokenTransfer({ to: BOB, valueMicroUsdt: 25_000_000n })),
    ],
  ];
  for (const [what, lie] of hidden) {
    it(`is confirmed if one of three nodes ${what}, whichever is read first`, async () => {
      const nodes = await start(3);
      lie(nodes[0], minePayment());
      const asked = await ask();
      const ours = asked.find(({ to, valueMicroUsdt }) => to === 'Alice' && valueMicroUsdt === 25_000_000n);
      assert.equal(ours?.outcome, 'confirmed');
      assert.deepEqual(ours?.says, ['denies it', 'shows it', 'shows it']);
      assert.deepEqual(problems().slice(1), [null, null]);
      assert.ok(['denies_payment', 'invents_payment'].includes(problems()[0] ?? ''));
    });
  }

  it('stays open while one of two nodes denies it', async () => {
    const [liar] = await start(2);
    minePayment();
    liar.view.forge(1, forgery);
    const [, forged] = await ask();
    assert.deepEqual([forged?.outcome, forged?.says], ['open', ['shows it', 'denies it']]);
    assert.deepEqual(problems(), [null, null]);
  });

  it('stays open, and is held against nobody, if its block is on no chain any more', async () => {
    await start(3);
    minePayment();
    const [block] = await all.tron.readBlocks(START, 1, NEVER);
    const gone = { number: 1, hash: 'ab'.repeat(32) };
    const [verdict] = await all.tron.confirm(gone, block?.transfers ?? [], NEVER);
    assert.equal(verdict?.outcome, 'open');
    assert.deepEqual(new Set(column(verdict.says, 'says')), new Set(['does not have the block']));
    assert.deepEqual(problems(), [null, null, null]);
  });

  for (const fault of ['overloaded', 'empty object', 'truncated', 'hang', 'forbidden', 'lite'] as const) {
    it(`is not denied by a node with the fault "${fault}"`, async () => {
      const [, , faulty] = await start(3);
      minePayment();
      faulty.faults.add({ fault, request: 'getblockbynum' });
      const [asked] = await ask();
      assert.equal(asked?.outcome, 'confirmed');
      assert.deepEqual(asked?.says.slice(0, 2), ['shows it', 'shows it']);
      assert.doesNotMatch(asked?.says[2] ?? '', /denies|shows/);
    });
  }
});

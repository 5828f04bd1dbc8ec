import assert from 'node:assert/strict';
import { readHeader } from '../../../../deposits/tron/read-block.ts';
import { ChainUnreadable, type TronChain } from '../../../../deposits/tron/tron-chain.ts';
import { hashName, toBase58Address } from '../../../../dev/tron/address.ts';
import { HandChain } from '../../../../dev/tron/chain.ts';
import { approval, failedTransfer, tokenTransfer, trxTransfer } from '../../../../dev/tron/drafts.ts';
import type { FakeNode, FakeNodeOptions } from '../../../../dev/tron/fake-node.ts';
import {
  ALICE,
  ALICE_HASH,
  BOB,
  BOB_HASH,
  type ChainOfNodes,
  NEVER,
  nameOf,
  readUpTo,
  startChainOfNodes,
} from '../../../support/adapters/chain-of-nodes.ts';
import { column } from '../../../support/column.ts';

const START = { number: 0, hash: null };

describe('the blocks of a TRON chain', () => {
  let all: ChainOfNodes;
  let chain: HandChain;
  let tron: TronChain;
  let node: FakeNode;
  const start = async (options?: FakeNodeOptions[]) => {
    all = await startChainOfNodes(options);
    ({ chain, tron } = all);
    [node] = all.nodes as [FakeNode];
  };
  beforeEach(() => start());
  afterEach(() => all.stop());

  it('contain every USDT transfer, identified by its transaction and log index', async () => {
    const block = chain.mine([
      trxTransfer(ALICE, 5),
      tokenTransfer({ to: ALICE, valueMicroUsdt: 25_000_000n }),
      tokenTransfer([
        { to: BOB, valueMicroUsdt: 1n },
        { to: ALICE, valueMicroUsdt: 2n },
        { to: ALICE, valueMicroUsdt: 2n },
      ]),
      tokenTransfer({ to: BOB, valueMicroUsdt: 2n ** 200n }),
    ]);
    chain.solidify();
    const [read, ...more] = await tron.readBlocks(START, 1, NEVER);
    assert.deepEqual(more, []);
    const [, one, several, huge] = block.transactions.map(({ id }) => ({
      ...{ txHash: id, blockNumber: 1 },
      shownBy: [nameOf(node)],
    }));
    assert.deepEqual(read, {
      ...{ number: 1, hash: block.hash, parentHash: chain.block(0)?.hash, time: new Date(block.timeMs) },
      node: tron.state().node,
      transfers: [
        { ...one, transactionIndex: 1, logIndex: 0, toHash: ALICE_HASH, valueMicroUsdt: 25_000_000n },
        { ...several, transactionIndex: 2, logIndex: 0, toHash: BOB_HASH, valueMicroUsdt: 1n },
        { ...several, transactionIndex: 2, logIndex: 1, toHash: ALICE_HASH, valueMicroUsdt: 2n },
        { ...several, transactionIndex: 2, logIndex: 2, toHash: ALICE_HASH, valueMicroUsdt: 2n },
        { ...huge, transactionIndex: 3, logIndex: 0, toHash: BOB_HASH, valueMicroUsdt: 2n ** 200n },
      ],
    });
  });

  it('leave out everything that moved no USDT', async () => {
    const payment = { to: ALICE, valueMicroUsdt: 25_000_000n };
    chain.mine([
      failedTransfer(payment, 'REVERT'),
      failedTransfer(payment, 'OUT_OF_ENERGY'),
      failedTransfer(payment, 'REVERT', 'logs'),
      failedTransfer(payment, 'OUT_OF_ENERGY', 'logs'),
      tokenTransfer(payment, toBase58Address(hashName('a contract that calls itself USDT'))),
      tokenTransfer({ ...payment, valueMicroUsdt: 0n }),
      approval(payment),
      trxTransfer(ALICE, 25_000_000),
    ]);
    chain.solidify();
    const [read] = await tron.readBlocks(START, 1, NEVER);
    assert.deepEqual(read?.transfers, []);
  });

  it('arrive in order and once each, however many are fetched at a time and whichever answer comes first', async () => {
    for (let number = 1; number <= 60; number++)
      chain.mine([tokenTransfer({ to: ALICE, valueMicroUsdt: BigInt(number) })]);
    chain.solidify();
    let calls = 0;
    // Each answer later than the next one's.
    Object.defineProperty(node, 'latencyMs', { get: () => 30 - 5 * (calls++ % 6) });
    const blocks = await readUpTo(tron, START, 60, 25);
    assert.deepEqual(
      blocks.map(({ number, hash }) => [number, hash]),
      Array.from({ length: 60 }, (_, at) => [at + 1, chain.block(at + 1)?.hash]),
    );
    assert.deepEqual(
      blocks.flatMap(({ transfers }) => transfers.map(({ valueMicroUsdt }) => Number(valueMicroUsdt))),
      Array.from({ length: 60 }, (_, at) => at + 1),
    );
    assert.ok(node.mostAtOnce >= 2 && node.mostAtOnce <= 8, `${node.mostAtOnce} at once`);
  });

  it('are read up to the newest solid block and no further', async () => {
    chain.mineMany(5);
    const blocks = await tron.readBlocks(START, 100, NEVER);
    assert.deepEqual(column(blocks, 'number'), [1, 2, 3]);
    const last = blocks.at(-1) ?? START;
    assert.deepEqual(await tron.readBlocks(last, 100, NEVER), []);
    assert.equal(tron.state().solidBlockNumber, 3);
    chain.fork(2, [[tokenTransfer({ to: ALICE, valueMicroUsdt: 1n })]]);
    const [fourth, ...more] = await tron.readBlocks(last, 100, NEVER);
    assert.deepEqual([fourth?.hash, fourth?.transfers.length, more], [chain.block(4)?.hash, 1, []]);
  });

  it('can be read from a bare node, which serves solid blocks on a separate port', async () => {
    await all.stop();
    await start([{ isBare: true }]);
    chain.mine([tokenTransfer({ to: ALICE, valueMicroUsdt: 3n })]);
    assert.equal((await tron.readUnsolid(null, NEVER))?.transfers.length, 1);
    chain.solidify();
    const [block] = await tron.readBlocks(START, 10, NEVER);
    assert.equal(block?.transfers[0]?.toHash, ALICE_HASH);
  });

  it('cost two calls each at the head of the chain, and a look that finds none costs one', async () => {
    const calls = () => [...node.calls.values()].reduce((sum, count) => sum + count, 0);
    const mine = () => chain.mine([tokenTransfer({ to: ALICE, valueMicroUsdt: 1n })]);
    for (let made = 0; made < 5; made++) mine();
    const [last = START] = (await readUpTo(tron, START, 3)).slice(-1);
    const before = calls();
    assert.deepEqual(await tron.readBlocks(last, 100, NEVER), []);
    assert.equal(calls(), before + 1);
    mine();
    assert.equal((await tron.readBlocks(last, 100, NEVER)).length, 1);
    assert.equal(calls(), before + 3);
  });

  it('stop being read when the reader is cancelled, which ends requests under way', async () => {
    chain.mineMany(30);
    node.faults.add({ fault: 'hang', request: 'getblockbynum' });
    const calling = new AbortController();
    const reading = tron.readBlocks(START, 30, calling.signal);
    calling.abort(new Error('called off'));
    await assert.rejects(reading, /called off/);
    await assert.rejects(tron.readBlocks(START, 30, calling.signal), /called off/);
    assert.equal(tron.state().nodes[0]?.problem, null);
    node.faults.clear();
    assert.equal((await readUpTo(tron, START, 28)).length, 28);
  });
});

describe('the last block before a time', () => {
  let all: ChainOfNodes;
  afterEach(() => all.stop());

  it('is found among many blocks with few calls', async () => {
    all = await startChainOfNodes([{}], {
      chain: new HandChain({ startTime: new Date(0), solidAfterBlocks: 2 }),
    });
    all.chain.mineMany(5_000);
    const find = (timeMs: number) => all.tron.findLastBlockBefore(new Date(timeMs), NEVER);
    for (const number of [1, 2, 777, 4_997, 4_998]) {
      const block = { number, hash: all.chain.block(number)?.hash, time: new Date(number * 3_000) };
      assert.deepEqual(await find(number * 3_000 + 1), block);
      assert.deepEqual(await find(number * 3_000 + 3_000), block);
    }
    assert.equal((await find(Date.now())).number, 4_998);
    const calls = all.nodes[0]?.calls.get('/walletsolidity/getblockbynum') ?? 0;
    assert.ok(calls <= 11 * 14, `${calls} calls`);
  });

  it('is block 0 if the chain is younger than that, and any block may follow it', async () => {
    all = await startChainOfNodes();
    all.chain.mineMany(9);
    const time = new Date(0);
    const start = await all.tron.findLastBlockBefore(time, NEVER);
    assert.deepEqual(start, { number: 0, hash: null, time });
    assert.equal((await readUpTo(all.tron, start, 7)).length, 7);
  });

  it('is not guessed if no node has blocks that old, because payments in them would be lost', async () => {
    all = await startChainOfNodes([{}], { chain: new HandChain({ firstNumber: 70_000_000 }) });
    all.chain.mineMany(10);
    await assert.rejects(all.tron.findLastBlockBefore(new Date(0), NEVER), (error) => {
      assert.ok(error instanceof ChainUnreadable);
      assert.match(error.message, /block_forgotten/);
      return true;
    });
  });
});

describe('blocks that are not solid yet', () => {
  let all: ChainOfNodes;
  let chain: HandChain;
  let tron: TronChain;
  let node: FakeNode;
  beforeEach(async () => {
    all = await startChainOfNodes();
    ({ chain, tron } = all);
    [node] = all.nodes as [FakeNode];
  });
  afterEach(() => all.stop());

  it('show the transfers that a reader asks for, with each block shown once and one call a turn', async () => {
    const pay = (valueMicroUsdt: bigint) => tokenTransfer({ to: ALICE, valueMicroUsdt });
    chain.mine([pay(1n)]);
    chain.mine([
      pay(2n),
      approval({ to: ALICE, valueMicroUsdt: 9n }),
      failedTransfer({ to: ALICE, valueMicroUsdt: 8n }, 'REVERT'),
    ]);
    const toHash = ALICE_HASH;
    const seen = (blockNumber: number, valueMicroUsdt: bigint) => ({ blockNumber, toHash, valueMicroUsdt });
    assert.deepEqual(await tron.readUnsolid(null, NEVER), { number: 2, transfers: [seen(2, 2n)] });
    assert.deepEqual(await tron.readUnsolid(2, NEVER), { number: 2, transfers: [] });
    assert.equal(node.calls.get('/wallet/getnowblock'), 2);
    assert.deepEqual([...node.calls.keys()], ['/wallet/getnowblock']);
    for (const value of [3n, 4n, 5n]) chain.mine([pay(value)]);
    const next = await tron.readUnsolid(2, NEVER);
    assert.deepEqual(next, { number: 5, transfers: [seen(3, 3n), seen(4, 4n), seen(5, 5n)] });
  });

  it('are shown again after a node has once claimed more than there are', async () => {
    chain.mineMany(5);
    node.view.claimedBlocks = 1_000_000;
    const claimed = await tron.readUnsolid(5, NEVER);
    assert.equal(claimed?.number, 1_000_005);
    node.view.reform();
    chain.mine([tokenTransfer({ to: ALICE, valueMicroUsdt: 1n })]);
    const seen = await tron.readUnsolid(claimed.number, NEVER);
    assert.deepEqual([seen?.number, seen?.transfers.length], [6, 1]);
  });

  it('are skipped if there are many, except for the newest', async () => {
    for (let number = 1; number <= 50; number++)
      chain.mine([tokenTransfer({ to: ALICE, valueMicroUsdt: BigInt(number) })]);
    const seen = await tron.readUnsolid(1, NEVER);
    assert.deepEqual([seen?.number, seen?.transfers.length], [50, 5]);
    assert.equal(node.calls.get('/wallet/getblockbynum'), 4);
  });

  it('give no hint if a node fails to serve them, while solid blocks are still read', async () => {
    chain.mineMany(5);
    node.faults.add({ fault: 'internal error', request: '/wallet/' });
    assert.equal(await tron.readUnsolid(null, NEVER), null);
    assert.equal((await tron.readBlocks(START, 10, NEVER)).length, 3);
    assert.deepEqual(tron.state().nodes[0]?.state, 'in_use');
  });
});

/** Headers of mainnet and of test networks, of versions 3, 31 (without transactions) and 37, with their hashes. */
const REAL_HEADERS: [hash: string, rawData: Record<string, unknown>][] = [
  [
    '00000000003a5bbda4aea15cb5d99230674463e9d5f2c0c647316839b25fd5b9',
    {
      number: 3824573,
      txTrieRoot: '31ee3e2ed28f843bf1d53495beece2f5b9c76480772f0106e17156fb0066c3a2',
      witness_address: '41f70386347e689e6308e4172ed7319c49c0f66e0b',
      parentHash: '00000000003a5bbc1e78e3144ad52f01a27b8f7acceb98d3ca09c1abea5cd32a',
      version: 3,
      timestamp: 1541425827000,
    },
  ],
  [
    '000000000335f6219b675cfb09a93b99a53729b80b188dcde464eb41625c3d0c',
    {
      number: 53868065,
      txTrieRoot: '0000000000000000000000000000000000000000000000000000000000000000',
      witness_address: '41711cf6683d28621ae12030fd541b288c61d682cd',
      parentHash: '000000000335f620ef6509d67751753763be896f7ac569fc1d1cfa059cecf619',
      version: 31,
      timestamp: 1745423034000,
    },
  ],
  [
    '00000000043725ef3720be45f1e46cd7e7adb91ce947e01afdf04aa8b1b7dea9',
    {
      number: 70723055,
      txTrieRoot: 'd1bbfae077b62cf0017bdfa1ef40ce5d9f03db5dc5d76d85de1c200a1fad7e69',
      witness_address: '41d4492e1c6e4850c11d196d0826be66d1542c44ec',
      parentHash: '00000000043725eea3f45bf7b9b5bee5da5a6a74b1b49bda3033dfdf190a2474',
      version: 37,
      timestamp: 1788689508000,
    },
  ],
];

describe('the hash of a block', () => {
  for (const [hash, rawData] of REAL_HEADERS) {
    it(`is recomputed from its header, as for block ${rawData.number} of the real chain`, () => {
      const read = readHeader({ blockID: hash, block_header: { raw_data: rawData } });
      assert.deepEqual([read?.hash, read?.number], [hash, rawData.number]);
      for (const [field, value] of Object.entries(rawData)) {
        const changed = String(value).replace(/.$/, (digit) => (digit === 'f' ? 'e' : 'f'));
        const other = typeof value === 'number' ? value + 1 : changed;
        const forged = { blockID: hash, block_header: { raw_data: { ...rawData, [field]: other } } };
        assert.throws(() => readHeader(forged), /wrong_hash/, field);
      }
    });
  }
});

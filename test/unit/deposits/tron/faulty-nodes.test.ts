import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { ChainUnreadable } from '../../../../deposits/tron/tron-chain.ts';
import type { FaultRule } from '../../../../dev/fault-rules.ts';
import { tokenTransfer } from '../../../../dev/tron/drafts.ts';
import type { Fault } from '../../../../dev/tron/faults.ts';
import {
  ALICE,
  type ChainOfNodes,
  NEVER,
  nameOf,
  readUpTo,
  startChainOfNodes,
} from '../../../support/adapters/chain-of-nodes.ts';
import { column } from '../../../support/column.ts';
import { inParallel } from '../../../support/in-parallel.ts';
import { until } from '../../../support/until.ts';

const START = { number: 0, hash: null };
const INFOS = 'gettransactioninfobyblocknum';

/** What a node does, and what is said of it then; null if that is no reason to pass it over at once. */
const FAULTS: [FaultRule<Fault>, string | null][] = [
  [{ fault: 'overloaded' }, 'overloaded'],
  [{ fault: 'overloaded', request: INFOS }, 'overloaded'],
  [{ fault: 'lite', request: INFOS }, 'lite_node'],
  [{ fault: 'forbidden' }, 'http_403'],
  [{ fault: 'rate limited' }, 'http_429'],
  [{ fault: 'rate limited', request: INFOS }, 'http_429'],
  [{ fault: 'internal error' }, 'http_500'],
  [{ fault: 'hang' }, 'timeout'],
  [{ fault: 'hang', request: INFOS }, 'timeout'],
  [{ fault: 'truncated' }, 'not_json'],
  [{ fault: 'truncated', request: INFOS }, 'not_json'],
  [{ fault: 'trickle' }, 'timeout'],
  [{ fault: 'endless', request: 'getnowblock' }, 'too_large'],
  [{ fault: 'endless', request: INFOS }, 'wrong_shape'],
  [{ fault: 'redirect' }, 'http_302'],
  [{ fault: 'unknown key' }, 'http_401'],
  [{ fault: 'disconnect' }, 'disconnected'],
  [{ fault: 'empty object', request: 'getnowblock' }, 'no_blocks'],
  [{ fault: 'empty list', request: 'getnowblock' }, 'wrong_shape'],
  [{ fault: 'empty list', request: 'getblockbynum' }, 'wrong_shape'],
  [{ fault: 'empty object', request: 'getblockbynum' }, null],
  [{ fault: 'empty list', request: INFOS }, null],
  [{ fault: 'empty object', request: INFOS }, null],
];

const mineIn = ({ chain }: ChainOfNodes, count: number) => {
  for (let made = 0; made < count; made++) chain.mine([tokenTransfer({ to: ALICE, valueMicroUsdt: 1n })]);
};

async function assertPassedOver(rule: FaultRule<Fault>, problem: string | null): Promise<void> {
  // Long enough for the other node on a machine that does much else at the time.
  const requestTimeoutMs = problem === 'timeout' ? 8_000 : 30_000;
  const all = await startChainOfNodes([{}, {}], { timings: { requestTimeoutMs } });
  try {
    mineIn(all, 12);
    const [bad, good] = all.nodes;
    bad?.faults.add(rule);
    // By both; the block at the head needs no getblockbynum.
    const first = await all.tron.readBlocks(START, 10, NEVER);
    assert.deepEqual(
      first.map(({ number, transfers, node }) => [number, transfers.length, node]),
      Array.from({ length: 10 }, (_, at) => [at + 1, 1, nameOf(good)]),
    );
    const [state] = all.tron.state().nodes;
    assert.deepEqual([state?.problem ?? null, state?.name], [problem, nameOf(bad)]);
    assert.equal(state?.state, problem === null ? 'standby' : 'failing');
    assert.equal(all.log.length, problem === null ? 0 : 1);
    assert.deepEqual([all.tron.state().node, all.tron.state().solidBlockNumber], [nameOf(good), 10]);
  } finally {
    await all.stop();
  }
}

describe('a TRON node with a fault', () => {
  let ends: Promise<void>[];
  before(() => {
    const works = FAULTS.map((row) => () => assertPassedOver(...row));
    ends = inParallel(4, works);
  });

  FAULTS.forEach(([rule], index) => {
    it(`is passed over without missing a block when it has the fault "${rule.fault}"${rule.request === undefined ? '' : ` in ${rule.request}`}`, () =>
      ends[index]);
  });
});

describe('a faulty TRON node', () => {
  let all: ChainOfNodes;
  afterEach(() => all.stop());
  const mine = (count: number) => mineIn(all, count);

  it('is logged when it fails and when it recovers, and not on each call in between', async () => {
    all = await startChainOfNodes([{}, {}]);
    mine(2);
    const [bad] = all.nodes;
    let last = { number: 0, hash: null as string | null };
    const readOne = async () => {
      mine(1);
      last = (await all.tron.readBlocks(last, 1, NEVER))[0] ?? last;
    };
    await readOne();
    const [was] = all.tron.state().nodes;
    bad?.faults.add({ fault: 'overloaded' });
    for (let round = 0; round < 30; round++) await readOne();
    bad?.faults.clear();
    all.passTime(1_000);
    await until('the first node is read from again', async () => {
      await readOne();
      return all.tron.state().node === nameOf(bad);
    });
    assert.deepEqual(
      all.log.map(({ level, node, problem }) => [level, node, problem]),
      [
        [40, nameOf(bad), 'overloaded'],
        [30, nameOf(bad), undefined],
      ],
    );
    const [is] = all.tron.state().nodes;
    assert.deepEqual([is?.state, is?.problem], ['in_use', null]);
    assert.ok(String(is?.since) > String(was?.since));
  });

  it('is not preferred while it flaps, and every block is read once, whichever node answers', async () => {
    all = await startChainOfNodes([{}, {}]);
    mine(102);
    const [flapping, good] = all.nodes;
    flapping?.faults.add({ fault: 'overloaded', every: 3 });
    const blocks = await readUpTo(all.tron, START, 100, 5);
    assert.deepEqual(
      column(blocks, 'number'),
      Array.from({ length: 100 }, (_, at) => at + 1),
    );
    assert.ok(blocks.filter(({ node }) => node === nameOf(good)).length > 80);
    assert.ok(all.log.length <= 3, JSON.stringify(all.log));
  });

  it('is still read if there is no other, and nothing is missed', async () => {
    all = await startChainOfNodes();
    mine(62);
    const broken: Fault[] = ['truncated', 'empty object', 'empty list'];
    const faults: Fault[] = ['overloaded', 'disconnect', 'internal error', ...broken];
    for (const [at, fault] of faults.entries()) all.nodes[0]?.faults.add({ fault, every: 19 + at });
    const blocks = await readUpTo(all.tron, START, 60, 7);
    assert.deepEqual(
      blocks.map(({ number, transfers }) => [number, transfers.length]),
      Array.from({ length: 60 }, (_, at) => [at + 1, 1]),
    );
  });

  it('gets the pause that it asked for while other nodes are read', async () => {
    const alsoServe = (_request: unknown, _body: string, response: ServerResponse) => {
      response.writeHead(429, { 'retry-after': '240' }).end();
      return true;
    };
    all = await startChainOfNodes([{ alsoServe }, {}]);
    mine(2);
    const [limited, other] = all.nodes;
    other?.faults.add({ fault: 'internal error', times: 1 });
    await assert.rejects(all.tron.readBlocks(START, 1, NEVER), (error) => {
      assert.ok(error instanceof ChainUnreadable);
      assert.match(error.message, /http_429.*http_500/);
      return true;
    });
    const calls = limited?.calls.get('/walletsolidity/getnowblock');
    mine(30);
    assert.equal((await readUpTo(all.tron, START, 30, 3)).length, 30);
    assert.equal(limited?.calls.get('/walletsolidity/getnowblock'), calls);
  });

  it('is told from a slow one if it never serves a block that it claims to have', async () => {
    all = await startChainOfNodes([{}], { timings: { patienceMs: 400 } });
    mine(3);
    const [node] = all.nodes;
    const txHash = all.chain.block(1)?.transactions[0]?.id ?? '';
    node?.view.dropInfo(txHash);
    assert.deepEqual(await all.tron.readBlocks(START, 1, NEVER), []);
    assert.equal(all.tron.state().nodes[0]?.state, 'in_use');
    await until('it is a problem', async () => {
      await all.tron
        .readBlocks(START, 1, NEVER)
        .catch((error) => assert.ok(error instanceof ChainUnreadable));
      return all.tron.state().nodes[0]?.problem === 'block_incomplete';
    });
    node?.view.reform();
    assert.equal((await readUpTo(all.tron, START, 1))[0]?.transfers.length, 1);
  });

  it('does not serve a block if one of its many infos is missing', async () => {
    all = await startChainOfNodes([{}, {}]);
    const payments = Array.from({ length: 40 }, () => tokenTransfer({ to: ALICE, valueMicroUsdt: 1n }));
    const block = all.chain.mine(payments);
    mine(2);
    const [bad, good] = all.nodes;
    bad?.view.dropInfo(block.transactions[17]?.id ?? '');
    const [read] = await all.tron.readBlocks(START, 1, NEVER);
    assert.deepEqual([read?.node, read?.transfers.length], [nameOf(good), 40]);
  });

  it('may send infos far larger than other answers, if they return or log that much', async () => {
    const large = 'ab'.repeat(65_536);
    const alsoServe = (request: IncomingMessage, body: string, response: ServerResponse) => {
      if (!request.url?.endsWith(INFOS)) return false;
      const infos = JSON.parse(all.nodes[0]?.view.infosJson(JSON.parse(body).num, true) ?? '');
      for (const info of infos) info.contractResult = [large];
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(JSON.stringify(infos)));
      return true;
    };
    all = await startChainOfNodes([{ alsoServe }]);
    all.chain.mine(Array.from({ length: 130 }, () => tokenTransfer({ to: ALICE, valueMicroUsdt: 1n })));
    all.chain.solidify();
    const [read] = await all.tron.readBlocks(START, 1, NEVER);
    assert.deepEqual([read?.transfers.length, all.log], [130, []]);
  });

  const OBJECT = '{"toString":1}';
  for (const [what, path, sent] of [
    ['an error', 'getnowblock', () => `{"Error":${OBJECT}}`],
    ["a transaction's id", 'getnowblock', (text: string) => text.replace(/"txID":"\w+"/, `"txID":${OBJECT}`)],
    ["an info's id", INFOS, (text: string) => text.replace(/"id":"\w+"/, `"id":${OBJECT}`)],
    ['an event', INFOS, (text: string) => text.replace(/"topics":\["\w+"/, `"topics":[${OBJECT}`)],
  ] as const) {
    it(`is passed over if it sends an object for ${what}`, async () => {
      const alsoServe = (request: IncomingMessage, body: string, response: ServerResponse) => {
        if (!request.url?.endsWith(path)) return false;
        const view = all.nodes[0]?.view;
        const text = path === INFOS ? view?.infosJson(JSON.parse(body).num, true) : view?.blockJson(1, true);
        response.end(sent(text ?? ''));
        return true;
      };
      all = await startChainOfNodes([{ alsoServe }, {}]);
      mine(3);
      const [read] = await all.tron.readBlocks(START, 1, NEVER);
      assert.equal(read?.node, nameOf(all.nodes[1]));
      assert.match(all.tron.state().nodes[0]?.problem ?? '', /^(wrong_shape|error_answer)$/);
    });
  }

  const empties = '{},'.repeat(4_000);
  const nested = `${'['.repeat(4_000)}${']'.repeat(4_000)}`;
  const manyNested = `${'['.repeat(2_100_000)}${']'.repeat(2_100_000)}`;
  for (const [what, path, answer] of [
    ['a block', 'getnowblock', `{"transactions":${manyNested}}`],
    ['infos', INFOS, `[[${empties}{}]]`],
    ['something else than infos', INFOS, `{"Error":${nested}}`],
  ] as const) {
    it(`may not send brackets for ${what}, since they take many times as much memory`, async () => {
      const alsoServe = (request: IncomingMessage, _body: string, response: ServerResponse) => {
        if (!request.url?.endsWith(path)) return false;
        response.end(answer);
        return true;
      };
      all = await startChainOfNodes([{ alsoServe }]);
      mine(3);
      await assert.rejects(all.tron.readBlocks(START, 1, NEVER), ChainUnreadable);
      assert.equal(all.tron.state().nodes[0]?.problem, 'too_large');
    });
  }

  // Six bytes each in the block, which may have 2 MB. Nodes show the transaction's bytes in hex, too.
  for (const [what, entry] of [
    ['of brackets', { inputs: [{}], outputs: [{}] }],
    ['as long as can be', { type: 'Constructor', stateMutability: 'Nonpayable' }],
  ] as const) {
    it(`may have a block that somebody has filled with a contract's interface, ${what}`, async () => {
      const abi = { entrys: Array(330_000).fill(entry) };
      const alsoServe = (request: IncomingMessage, _body: string, response: ServerResponse) => {
        if (!request.url?.endsWith('walletsolidity/getnowblock')) return false;
        const block = JSON.parse(all.nodes[0]?.view.blockJson(1, true) ?? '');
        Object.assign(block.transactions[0], { abi, raw_data_hex: '00'.repeat(2_000_000) });
        response.end(JSON.stringify(block));
        return true;
      };
      all = await startChainOfNodes([{ alsoServe }]);
      mine(3);
      const [read] = await all.tron.readBlocks(START, 1, NEVER);
      assert.equal(read?.transfers.length, 1);
    });
  }

  for (const [what, zipped, problem] of [
    ['its answers', gzipSync('{}'), 'no_blocks'],
    [
      'nothing longer than an uncompressed answer may be',
      gzipSync(Buffer.alloc(64 * 1_048_576)),
      'too_large',
    ],
    ['nothing in another way', Buffer.from('not zipped at all'), 'z_data_error'],
  ] as const) {
    it(`may compress ${what}`, async () => {
      const alsoServe = (request: IncomingMessage, _body: string, response: ServerResponse) => {
        assert.equal(request.headers['accept-encoding'], 'gzip');
        response.writeHead(200, { 'content-encoding': 'gzip' }).end(zipped);
        return true;
      };
      all = await startChainOfNodes([{ alsoServe }]);
      await assert.rejects(all.tron.readBlocks(START, 1, NEVER), ChainUnreadable);
      assert.equal(all.tron.state().nodes[0]?.problem, problem);
    });
  }

  it('is never quoted in a log, a state or an error, since it might repeat a key', async () => {
    const secret = 'hunter2-hunter2';
    const alsoServe = (_request: unknown, _body: string, response: ServerResponse) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ Error: `ApiKey ${secret} not exists` }));
      return true;
    };
    all = await startChainOfNodes([{ alsoServe }]);
    const error = await all.tron.readBlocks(START, 1, NEVER).catch((thrown) => thrown);
    assert.ok(error instanceof ChainUnreadable);
    const said = String(error.stack) + JSON.stringify([error, all.tron.state(), all.log]);
    assert.ok(!said.includes(secret), said);
    assert.match(error.message, /error_answer/);
  });
});

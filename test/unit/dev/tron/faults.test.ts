import assert from 'node:assert/strict';
import { HandChain } from '../../../../dev/tron/chain.ts';
import { tokenTransfer } from '../../../../dev/tron/drafts.ts';
import { type FakeNode, startFakeNode } from '../../../../dev/tron/fake-node.ts';
import type { Fault } from '../../../../dev/tron/faults.ts';

const ALICE = 'TWer2Ygk5TEheHp3TPuYeqxmB6SsGZmaL6';
const INFOS = '/walletsolidity/gettransactioninfobyblocknum';

describe('a fake TRON node', () => {
  let chain: HandChain;
  let node: FakeNode;
  let honest: FakeNode;
  const post = (path: string, body: unknown = {}, of = node) =>
    fetch(of.url + path, { method: 'POST', body: JSON.stringify(body) });
  // biome-ignore lint/suspicious/noExplicitAny: what a client would read.
  const ask = async (path: string, body?: unknown, of = node): Promise<any> =>
    (await post(path, body, of)).json();

  beforeEach(async () => {
    chain = new HandChain({ solidAfterBlocks: 2 });
    chain.mine([
      tokenTransfer({ to: ALICE, valueMicroUsdt: 1n }),
      tokenTransfer({ to: ALICE, valueMicroUsdt: 2n }),
    ]);
    chain.mineMany(5);
    node = await startFakeNode(chain, { name: 'liar' });
    honest = await startFakeNode(chain, { name: 'honest' });
  });
  afterEach(() => Promise.all([node.stop(), honest.stop()]));

  for (const [fault, status, body] of [
    ['empty list', 200, /^\[\]$/],
    ['empty object', 200, /^\{\}$/],
    ['overloaded', 200, /^\{"Error":".*lack of computing resources"\}$/],
    ['lite', 200, /^this API is closed because this node is a lite fullnode$/],
    ['unknown key', 401, /ApiKey/],
    ['forbidden', 403, /Error/],
    ['rate limited', 429, /frequency/],
    ['internal error', 500, /^<html>/],
  ] satisfies [Fault, number, RegExp][]) {
    it(`answers ${status} with ${body} for the fault "${fault}"`, async () => {
      node.faults.add({ fault });
      const response = await post('/wallet/getnowblock');
      assert.equal(response.status, status);
      assert.match(await response.text(), body);
    });
  }

  it('cuts the answer in half for the fault "truncated"', async () => {
    node.faults.add({ fault: 'truncated' });
    const text = await (await post('/wallet/getnowblock')).text();
    assert.ok((await (await post('/wallet/getnowblock', {}, honest)).text()).startsWith(text));
    assert.throws(() => JSON.parse(text), SyntaxError);
  });

  it('answers for ever, slowly for the fault "trickle" and fast for "endless"', async () => {
    const bytesWithin = async (timeoutMs: number) => {
      let bytes = 0;
      const response = await fetch(`${node.url}/wallet/getnowblock`, {
        signal: AbortSignal.timeout(timeoutMs),
      });
      await assert.rejects(
        async () => {
          for await (const chunk of response.body ?? []) {
            bytes += chunk.length;
            if (bytes > 30_000_000) throw new RangeError('enough');
          }
        },
        { name: /TimeoutError|RangeError/ },
      );
      return bytes;
    };
    const undo = node.faults.add({ fault: 'trickle' });
    const few = await bytesWithin(500);
    assert.ok(few > 0 && few < 100, String(few));
    undo();
    node.faults.add({ fault: 'endless' });
    assert.ok((await bytesWithin(60_000)) > 30_000_000);
  });

  it('redirects elsewhere for the fault "redirect"', async () => {
    node.faults.add({ fault: 'redirect' });
    const response = await fetch(`${node.url}/wallet/getnowblock`, { redirect: 'manual' });
    assert.deepEqual([response.status, response.headers.get('location')], [302, '/elsewhere']);
  });

  it('never answers for the fault "hang", and hangs up for "disconnect"', async () => {
    const undo = node.faults.add({ fault: 'hang' });
    const signal = AbortSignal.timeout(100);
    await assert.rejects(fetch(`${node.url}/wallet/getnowblock`, { signal }), { name: 'TimeoutError' });
    undo();
    node.faults.add({ fault: 'disconnect' });
    await assert.rejects(post('/wallet/getnowblock'), TypeError);
  });

  it('has a fault in some paths, at every n-th call or a number of times, until it is undone', async () => {
    const statuses = async (count: number, path: string) => {
      const all: number[] = [];
      for (let call = 0; call < count; call++) all.push((await post(path)).status);
      return all;
    };
    node.faults.add({ fault: 'forbidden', path: 'gettransactioninfobyblocknum', every: 2, times: 2 });
    assert.deepEqual(await statuses(2, '/wallet/getnowblock'), [200, 200]);
    assert.deepEqual(await statuses(6, INFOS), [200, 403, 200, 403, 200, 200]);
    const undo = node.faults.add({ fault: 'rate limited' });
    assert.deepEqual(await statuses(1, INFOS), [429]);
    undo();
    assert.deepEqual(await statuses(1, INFOS), [200]);
    node.faults.add({ fault: 'forbidden' });
    node.faults.clear();
    assert.deepEqual(await statuses(1, INFOS), [200]);
  });

  it('lags or stops on request', async () => {
    const heads = async () => {
      const [full, solid] = [await ask('/wallet/getnowblock'), await ask('/walletsolidity/getnowblock')];
      return [full, solid].map((block) => block.block_header.raw_data.number ?? 0);
    };
    node.view.lagBlocks = 3;
    assert.deepEqual(await heads(), [3, 1]);
    assert.deepEqual(await ask('/wallet/getblockbynum', { num: 4 }), {});
    node.view.reform();
    node.view.stopsAt = 6;
    chain.mineMany(10);
    assert.deepEqual(await heads(), [6, 6]);
    assert.deepEqual(await ask(INFOS, { num: 7 }), []);
  });

  it('follows a fork of its own from a given block on', async () => {
    node.view.forksAt = 3;
    const [second, third, fourth] = await Promise.all(
      [2, 3, 4].map((num) => ask('/wallet/getblockbynum', { num })),
    );
    const truth = await ask('/wallet/getblockbynum', { num: 3 }, honest);
    assert.equal(second.blockID, truth.block_header.raw_data.parentHash);
    assert.equal(third.block_header.raw_data.parentHash, second.blockID);
    assert.notEqual(third.blockID, truth.blockID);
    assert.equal(fourth.block_header.raw_data.parentHash, third.blockID);
  });

  it('hides a payment, forges one, or leaves an info out, under the right hash', async () => {
    const [first, second] = chain.block(1)?.transactions ?? [];
    node.view.hideLogs(first?.id ?? '');
    const forged = node.view.forge(1, tokenTransfer({ to: ALICE, valueMicroUsdt: 9n }));
    node.view.dropInfo(second?.id ?? '');
    const block = await ask('/wallet/getblockbynum', { num: 1 });
    assert.equal(block.blockID, chain.block(1)?.hash);
    assert.deepEqual(
      block.transactions.map(({ txID }: { txID: string }) => txID),
      [first?.id, second?.id, forged.id],
    );
    const infos = await ask(INFOS, { num: 1 });
    assert.deepEqual(
      infos.map((info: { id: string; log?: unknown[] }) => [info.id, info.log?.length]),
      [
        [first?.id, undefined],
        [forged.id, 1],
      ],
    );
    assert.equal((await ask(INFOS, { num: 1 }, honest))[0].log.length, 1);
    node.view.reform();
    assert.deepEqual(await ask(INFOS, { num: 1 }), await ask(INFOS, { num: 1 }, honest));
  });
});

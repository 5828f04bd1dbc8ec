import assert from 'node:assert/strict';
import { HandChain } from '../../../../dev/tron/chain.ts';
import { tokenTransfer } from '../../../../dev/tron/drafts.ts';
import { RealSizedBlocks } from '../../../../dev/tron/real-sized-blocks.ts';

const ALICE = 'TWer2Ygk5TEheHp3TPuYeqxmB6SsGZmaL6';
const PAYMENT = tokenTransfer({ to: ALICE, valueMicroUsdt: 1_000_000n });

describe('a chain that a test drives', () => {
  it('begins an hour ago with one block, and makes a day of blocks at once', () => {
    const chain = new HandChain();
    assert.deepEqual([chain.headNumber(), chain.solidNumber()], [0, 0]);
    const startMs = chain.head.timeMs;
    const last = chain.mineMany(28_800);
    assert.equal(last.timeMs - startMs, 24 * 3_600_000);
    assert.deepEqual([chain.headNumber(), chain.solidNumber()], [28_800, 28_781]);
  });

  it('takes the times that a test gives, each later than the one before', () => {
    const chain = new HandChain({ startTime: new Date(0), everyMs: 3_000, firstNumber: 70_000_000 });
    assert.equal(chain.mine([], { time: new Date(500) }).number, 70_000_001);
    assert.throws(() => chain.mine([], { time: new Date(500) }), RangeError);
    chain.mineUntil(new Date(10_000));
    const times = Array.from({ length: 6 }, (_, at) => chain.block(70_000_000 + at)?.timeMs);
    assert.deepEqual(times, [0, 500, 3_500, 6_500, 9_500, 10_000]);
    assert.equal(chain.block(69_999_999), undefined);
    assert.equal(chain.block(70_000_006), undefined);
  });

  it('gives equal transactions different ids, and says which block has them', () => {
    const chain = new HandChain();
    const blocks = [chain.mine([PAYMENT, PAYMENT]), chain.mine([PAYMENT])];
    const ids = blocks.flatMap(({ transactions }) => transactions.map(({ id }) => id));
    assert.equal(new Set(ids).size, 3);
    assert.deepEqual(
      ids.map((id) => chain.numberOf(id)),
      [1, 1, 2],
    );
  });

  it('is the same chain whenever it is made in the same way', () => {
    const [one, other] = [0, 0].map(() => {
      const chain = new HandChain({ startTime: new Date(0) });
      chain.mine([PAYMENT]);
      return chain.head;
    });
    assert.equal(one?.hash, other?.hash);
  });

  it('forks at the head into a longer chain, and keeps solid blocks', () => {
    const chain = new HandChain({ solidAfterBlocks: 3 });
    chain.mineMany(5);
    const lost = chain.mine([PAYMENT]);
    const before = Array.from({ length: 7 }, (_, number) => chain.block(number)?.hash);
    assert.throws(() => chain.fork(4), RangeError);
    const forked = chain.fork(2, [[], [], [PAYMENT]]);
    assert.deepEqual(
      forked.map(({ number }) => number),
      [5, 6, 7],
    );
    const after = Array.from({ length: 7 }, (_, number) => chain.block(number)?.hash);
    assert.deepEqual(
      after.map((hash, number) => hash === before[number]),
      [true, true, true, true, true, false, false],
    );
    assert.equal(chain.numberOf(lost.transactions[0]?.id ?? ''), undefined);
    assert.equal(chain.fork(1).length, 2);
    assert.equal(chain.headNumber(), 8);
  });

  it('has blocks as large as real ones, a third of them USDT transfers', () => {
    const chain = new HandChain();
    const blocks = new RealSizedBlocks();
    for (let number = 1; number <= 200; number++) {
      const { transactions } = chain.mine(blocks.contentOf(number));
      assert.ok(transactions.length >= 100 && transactions.length <= 300);
      assert.equal(new Set(transactions.map(({ id }) => id)).size, transactions.length);
      const transfers = transactions.filter(({ json }) => json.includes('"a9059cbb'));
      assert.ok(
        transfers.length > transactions.length * 0.3,
        `${transfers.length} of ${transactions.length}`,
      );
    }
    assert.deepEqual(
      new RealSizedBlocks().contentOf(7).map(({ id }) => id),
      chain.block(7)?.transactions.map(({ id }) => id),
    );
  });
});

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ClockChain } from '../../../../dev/tron/clock-chain.ts';
import { scratchFolder } from '../../../support/dev/scratch.ts';

const ALICE = 'TWer2Ygk5TEheHp3TPuYeqxmB6SsGZmaL6';
const START_MS = Date.UTC(2026, 0, 1);

describe('the chain of the local stack', () => {
  const scratch = scratchFolder();
  let count = 0;
  let file: string;
  let nowMs: number;
  const open = () => new ClockChain(file, () => nowMs);
  const blocks = (chain: ClockChain) =>
    Array.from({ length: chain.headNumber() + 1 }, (_, number) => chain.block(number));
  const hashes = (chain: ClockChain) => blocks(chain).map((block) => block?.hash);

  beforeEach(() => {
    file = join(scratch.path, `chain-${++count}.json`);
    nowMs = START_MS;
  });

  it('begins with an hour of blocks, and then has one every second, solid two seconds later', () => {
    const chain = open();
    assert.deepEqual([chain.headNumber(), chain.solidNumber()], [60, 58]);
    assert.equal(chain.block(0)?.timeMs, START_MS - 3_600_000);
    assert.equal(chain.block(60)?.timeMs, START_MS);
    nowMs += 5_999;
    assert.equal(chain.headNumber(), 65);
    assert.equal(chain.block(65)?.timeMs, START_MS + 5_000);
    assert.equal(chain.block(66), undefined);
    assert.equal(chain.block(-1), undefined);
  });

  it('puts a payment into the next block, and several into the same', () => {
    const chain = open();
    const paid = [1n, 1n].map((valueMicroUsdt) => chain.pay({ to: ALICE, valueMicroUsdt }));
    assert.deepEqual(
      paid.map(({ block }) => block),
      [61, 61],
    );
    assert.equal(chain.block(61), undefined);
    nowMs += 1_000;
    assert.deepEqual(
      chain.block(61)?.transactions.map(({ id }) => id),
      paid.map(({ txId }) => txId),
    );
    assert.notEqual(paid[0]?.txId, paid[1]?.txId);
    assert.equal(chain.numberOf(paid[1]?.txId ?? ''), 61);
  });

  for (const [how, stop] of [
    ['an ordered stop', (chain: ClockChain) => chain.close()],
    ['a kill', () => {}],
  ] as const) {
    it(`keeps every block and payment that it showed after ${how} of any length`, () => {
      for (const stoppedMs of [0, 400, 1_000, 30_000, 61_000, 3 * 24 * 3_600_000]) {
        const chain = open();
        const { txId } = chain.pay({ to: ALICE, valueMicroUsdt: 1n });
        nowMs += 7_300;
        const paid = chain.pay({ to: ALICE, valueMicroUsdt: 2n });
        const before = hashes(chain);
        stop(chain);
        nowMs += stoppedMs;
        const after = open();
        assert.deepEqual(hashes(after).slice(0, before.length), before);
        nowMs += 100_000;
        assert.ok(after.block(after.numberOf(txId) ?? -1)?.transactions.some(({ id }) => id === txId));
        assert.equal(after.numberOf(paid.txId), paid.block);
        const times = blocks(after).map((block) => block?.timeMs ?? 0);
        assert.ok(times.every((timeMs, at) => at === 0 || timeMs > (times[at - 1] ?? 0)));
        assert.ok(nowMs - (times.at(-1) ?? 0) < 1_000, 'a block every second');
        stop(after);
      }
    });
  }

  it('has one block a minute for the time it was stopped, so that scans catch up soon', () => {
    const chain = open();
    nowMs += 10_000;
    const before = chain.headNumber();
    chain.close();
    nowMs += 2 * 24 * 3_600_000;
    const height = open().headNumber() - before;
    assert.ok(height >= 2_879 && height <= 2_881, String(height));
  });

  it('removes no block when the clock is set back', () => {
    const chain = open();
    nowMs += 10_000;
    const head = chain.headNumber();
    nowMs -= 5_000;
    assert.equal(chain.headNumber(), head);
    assert.equal(chain.pay({ to: ALICE, valueMicroUsdt: 1n }).block, head + 1);
  });

  it('keeps its file small, whatever its height', () => {
    for (let run = 0; run < 3; run++) {
      const chain = open();
      nowMs += 24 * 3_600_000;
      assert.ok(chain.headNumber() > 86_400);
      chain.close();
    }
    assert.ok(readFileSync(file).length < 2_000);
  });
});

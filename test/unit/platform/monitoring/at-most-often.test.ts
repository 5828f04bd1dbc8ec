import assert from 'node:assert/strict';
import { atMostOften } from '../../../../platform/monitoring/at-most-often.ts';

describe('what is computed at most once a second', () => {
  let nowMs: number;
  let computed: PromiseWithResolvers<string>[];
  let get: () => Promise<string>;
  beforeEach(() => {
    [nowMs, computed] = [0, []];
    const compute = () => {
      const one = Promise.withResolvers<string>();
      computed.push(one);
      return one.promise;
    };
    get = atMostOften(1_000, compute, () => nowMs);
  });

  it('is computed again a second after the last time began, however many ask', async () => {
    const asked = [get(), get()];
    computed[0]?.resolve('first');
    nowMs = 999;
    assert.deepEqual(await Promise.all([...asked, get()]), ['first', 'first', 'first']);
    nowMs = 1_000;
    const again = [get(), get()];
    computed[1]?.resolve('second');
    assert.deepEqual(await Promise.all(again), ['second', 'second']);
    assert.equal(computed.length, 2);
  });

  it('is never computed twice at a time, however long it takes', async () => {
    const first = get();
    nowMs = 60_000;
    const second = get();
    computed[0]?.resolve('late');
    assert.deepEqual([await first, await second, computed.length], ['late', 'late', 1]);
  });

  it('is computed again after a failure', async () => {
    const failing = get();
    computed[0]?.reject(new Error('down'));
    await assert.rejects(failing, /down/);
    nowMs = 1_000;
    const next = get();
    computed[1]?.resolve('up');
    assert.equal(await next, 'up');
  });
});

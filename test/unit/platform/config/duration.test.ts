import assert from 'node:assert/strict';
import fc from 'fast-check';
import { parseDuration } from '../../../../platform/config/duration.ts';

describe('parseDuration', () => {
  it('reads each unit', () => {
    assert.deepEqual(['250ms', '30s', '5m', '8h', '0s', '007m'].map(parseDuration), [
      ...[250, 30_000, 300_000, 28_800_000, 0, 420_000],
    ]);
  });

  it('rejects everything else', () => {
    for (const text of '5 s -5s +5s 1.5s 5S 5d 5min 1h30m 1e3s ５s 9999999999s'.split(' '))
      assert.equal(parseDuration(text), undefined, text);
    for (const text of ['', '5 s', ' 5s', '5s ', '5s\n']) assert.equal(parseDuration(text), undefined, text);
  });

  it('returns a safe integer for whatever it reads', () => {
    fc.assert(
      fc.property(fc.nat(999_999_999), fc.constantFrom('ms', 's', 'm', 'h'), (count, unit) => {
        assert.ok(Number.isSafeInteger(parseDuration(`${count}${unit}`)));
      }),
    );
  });
});

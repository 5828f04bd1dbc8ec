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
    const wrong = [
      '',
      '5',
      's',
      '5 s',
      ' 5s',
      '5s ',
      '5s\n',
      '1.5s',
      '-5s',
      '+5s',
      '5S',
      '5d',
      '5min',
      '1h30m',
    ];
    for (const text of [...wrong, '1e3s', '５s', '9999999999s']) {
      assert.equal(parseDuration(text), undefined, text);
    }
  });

  it('returns a safe integer for whatever it reads', () => {
    fc.assert(
      fc.property(fc.nat(999_999_999), fc.constantFrom('ms', 's', 'm', 'h'), (count, unit) => {
        assert.ok(Number.isSafeInteger(parseDuration(`${count}${unit}`)));
      }),
    );
  });
});

import assert from 'node:assert/strict';
import { retryAfterMs } from '../../../../platform/process/retry-after.ts';

const NOW = Date.parse('2026-11-25T08:00:00Z');

describe('Retry-After', () => {
  for (const [header, expectedMs] of [
    ['0', 0],
    ['120', 120_000],
    [' 7 ', 7_000],
    ['Wed, 25 Nov 2026 08:01:30 GMT', 90_000],
    ['Wed, 25 Nov 2026 07:00:00 GMT', 0],
    ['Wednesday', null],
    ['-1', null],
    ['1.5', null],
    ['2026-11-25', null],
    ['', null],
    [undefined, null],
  ] as const) {
    it(`${header} means ${expectedMs === null ? 'nothing' : `${expectedMs} ms`}`, () => {
      assert.equal(retryAfterMs(header, NOW), expectedMs);
    });
  }
});

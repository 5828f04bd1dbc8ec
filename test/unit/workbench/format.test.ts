import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  formatChange,
  formatCode,
  formatCount,
  formatDay,
  formatDuration,
  formatMoney,
  formatTime,
  parseMoney,
} from '../../../workbench/format.ts';

describe("the workbench's money", () => {
  for (const [cents, text] of [
    [0, '$0.00'],
    [5, '$0.05'],
    [123_450, '$1,234.50'],
    [-5, '−$0.05'],
    [-100_000, '−$1,000.00'],
    [Number.MAX_SAFE_INTEGER, '$90,071,992,547,409.91'],
  ] as const)
    it(`is ${text} of ${cents} cents`, () => assert.equal(formatMoney(cents), text));

  it('has a sign where a balance changes', () => {
    assert.deepEqual([500, 0, -500].map(formatChange), ['+$5.00', '$0.00', '−$5.00']);
  });

  for (const [text, cents] of [
    ['12', 1_200],
    ['12.5', 1_250],
    [' $1,234.50 ', 123_450],
    ['0.07', 7],
    ['', null],
    ['12.345', null],
    ['1,23', null],
    ['-5', null],
    ['1e3', null],
    ['٣', null],
    ['12.', null],
    ['9999999999', null],
  ] as const)
    it(`is ${cents} cents of what somebody typed: "${text}"`, () => assert.equal(parseMoney(text), cents));

  it('is read as it is written', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 99_999_999_999 }), (cents) => {
        assert.equal(parseMoney(formatMoney(cents)), cents);
      }),
    );
  });
});

describe("the workbench's times", () => {
  it('have the year only if it is another one', () => {
    const now = new Date('2026-11-27T12:00:00Z');
    assert.match(formatTime('2026-11-20T10:11:12Z', now), /^Nov \d+, \d\d:11:12$/);
    assert.match(formatTime('2027-06-20T10:11:12Z', now), /^Jun \d+, 2027, \d\d:11$/);
  });

  it('are days in UTC', () => assert.equal(formatDay('2026-03-01'), 'Mar 1'));

  for (const [seconds, text] of [
    [0, '0 seconds'],
    [1, '1 second'],
    [3_661, '1 hour 1 minute'],
    [2 * 86_400, '2 days'],
    [86_400 + 59, '1 day 59 seconds'],
    [-5, '0 seconds'],
  ] as const)
    it(`are "${text}" of ${seconds} seconds`, () => assert.equal(formatDuration(seconds), text));
});

describe("the workbench's words", () => {
  it('are codes as a person says them', () => {
    assert.equal(formatCode('spending_limit_exceeded'), 'Spending limit exceeded');
  });

  it('say that an overview counts no further than 1,000', () => {
    assert.deepEqual([0, 999, 1_000].map(formatCount), ['0', '999', '1,000 or more']);
  });
});

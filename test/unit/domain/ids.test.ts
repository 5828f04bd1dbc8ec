import assert from 'node:assert/strict';
import { isId } from '../../../domain/ids.ts';
import { newId } from '../../../platform/crypto/new-id.ts';

describe('ids', () => {
  it('have their prefix and 26 characters that readers do not confuse', () => {
    for (let i = 0; i < 1_000; i++) assert.match(newId('card'), /^card_[0-9a-hjkmnp-tv-z]{26}$/);
  });

  it('sort by the millisecond in which they were made', () => {
    const before = newId('evt');
    const startedAt = Date.now();
    while (Date.now() === startedAt);
    assert.ok(before < newId('evt'));
  });

  it('are all different and hard to guess from the previous one', () => {
    const ids = Array.from({ length: 10_000 }, () => newId('key'));
    assert.equal(new Set(ids).size, ids.length);
    // 80 random bits make the last 16 characters: neighbours share none of them but by chance.
    const tails = ids.map((id) => id.slice(-16, -8));
    assert.equal(new Set(tails).size, tails.length);
  });

  it('are recognised by prefix and shape', () => {
    const id = newId('card');
    assert.equal(isId('card', id), true);
    assert.equal(isId('evt', id), false);
    for (const other of [
      '',
      'card_',
      id.slice(0, -1),
      `${id}0`,
      `${id}\n`,
      ` ${id}`,
      id.toUpperCase(),
      `card_${'i'.repeat(26)}`,
      'card',
      `${id.slice(0, -1)}\u0000`,
      `${id.slice(0, -1)}é`,
    ]) {
      assert.equal(isId('card', other), false, other);
    }
  });
});

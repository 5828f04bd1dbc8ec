import assert from 'node:assert/strict';
import { isId } from '../../../domain/ids.ts';
import { lowestId, newId, readIdTime } from '../../../platform/crypto/new-id.ts';

const MANY = 5_000;

describe('ids', () => {
  it('have their prefix and 26 characters that readers do not confuse', () => {
    for (let i = 0; i < 1_000; i++) assert.match(newId('card'), /^card_[0-9a-hjkmnp-tv-z]{26}$/);
  });

  it('sort behind those that were made before them, also in the same millisecond', () => {
    const ids = Array.from({ length: MANY }, () => newId('evt'));
    const milliseconds = new Set(ids.map((id) => readIdTime(id).getTime()));
    assert.ok(milliseconds.size < MANY / 10, `${milliseconds.size} milliseconds`);
    assert.deepEqual(ids, ids.toSorted());
    assert.equal(new Set(ids).size, MANY);
  });

  it('are far from the one before, so that they can not be guessed', () => {
    const heads = new Set(Array.from({ length: MANY }, () => newId('evt').slice(0, -8)));
    assert.equal(heads.size, MANY);
  });

  it('have the time that they are given', () => {
    const at = new Date('2026-03-04T05:06:07.089Z');
    const id = newId('auth', at);
    assert.deepEqual(readIdTime(id), at);
    assert.ok(id >= lowestId('auth', at) && id < lowestId('auth', new Date(at.getTime() + 1)));
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

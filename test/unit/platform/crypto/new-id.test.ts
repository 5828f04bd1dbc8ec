import assert from 'node:assert/strict';
import { isId } from '../../../../domain/ids.ts';
import { lowestId, newId, readIdTime } from '../../../../platform/crypto/new-id.ts';

const MANY = 5_000;

describe('an id', () => {
  it('sorts behind those that were made before it, also in the same millisecond', () => {
    const ids = Array.from({ length: MANY }, () => newId('evt'));
    const milliseconds = new Set(ids.map((id) => readIdTime(id).getTime()));
    assert.ok(milliseconds.size < MANY / 10, `${milliseconds.size} milliseconds`);
    assert.deepEqual(ids, ids.toSorted());
    assert.equal(new Set(ids).size, MANY);
    for (const id of ids) assert.ok(isId('evt', id), id);
  });

  it('is far from the one before it, so that it can not be guessed', () => {
    const heads = new Set(Array.from({ length: MANY }, () => newId('evt').slice(0, -8)));
    assert.equal(heads.size, MANY);
  });

  it('has the time that it is given', () => {
    const at = new Date('2026-03-04T05:06:07.089Z');
    const id = newId('auth', at);
    assert.deepEqual(readIdTime(id), at);
    assert.ok(id >= lowestId('auth', at) && id < lowestId('auth', new Date(at.getTime() + 1)));
  });
});

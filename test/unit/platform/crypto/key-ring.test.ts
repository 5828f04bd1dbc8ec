import assert from 'node:assert/strict';
import type { KeyObject } from 'node:crypto';
import { KeyRing } from '../../../../platform/crypto/key-ring.ts';

const OLD = { id: 'old', secret: Buffer.alloc(32, 1) };
const NEW = { id: 'new', secret: Buffer.alloc(32, 2) };

describe('a key ring', () => {
  const ring = new KeyRing([OLD]);
  const rotated = new KeyRing([NEW, OLD]);

  it('opens any text that it sealed, and the sealed form shows nothing of it', () => {
    for (const text of ['', 'x', 'Ada Lovelace 💳', 'y'.repeat(100_000)]) {
      const sealed = ring.seal(text, 'context');
      assert.equal(ring.open(sealed, 'context'), text);
      assert.ok(text.length < 2 || !sealed.toString('latin1').includes(text));
    }
    assert.notDeepEqual(ring.seal('same', 'context'), ring.seal('same', 'context'));
  });

  it('still opens older texts when it has a new first key, which seals new ones', () => {
    assert.equal(rotated.open(ring.seal('x', 'context'), 'context'), 'x');
    const sealed = rotated.seal('x', 'context');
    assert.equal(rotated.open(sealed, 'context'), 'x');
    assert.throws(() => ring.open(sealed, 'context'), /ENCRYPTION_KEYS has no key "new": add it back/);
  });

  it('refuses what was sealed for another context or changed in any byte', () => {
    const sealed = ring.seal('secret', 'claim_1/request');
    assert.throws(() => ring.open(sealed, 'claim_1/response'));
    for (let at = 0; at < sealed.length; at++) {
      const changed = Buffer.from(sealed);
      changed[at] = (changed[at] as number) ^ 1;
      assert.throws(() => ring.open(changed, 'claim_1/request'));
    }
    for (const short of [Buffer.alloc(0), sealed.subarray(0, 5), sealed.subarray(0, -1)]) {
      assert.throws(() => ring.open(short, 'claim_1/request'));
    }
  });

  it('derives a different key for each purpose and each key of the ring', () => {
    const bytes = (keys: KeyObject[]) => keys.map((key) => key.export().toString('hex'));
    const ofBoth = bytes([rotated.deriveFrom('new', 'a'), rotated.deriveFrom('old', 'a')]);
    assert.deepEqual(bytes(rotated.derive('a')), ofBoth);
    assert.deepEqual(bytes(ring.derive('a')), ofBoth.slice(1));
    const secrets = [OLD, NEW].map(({ secret }) => secret.toString('hex'));
    const all = [...bytes(rotated.derive('a')), ...bytes(rotated.derive('b')), ...secrets];
    assert.equal(new Set(all).size, all.length);
    assert.throws(() => ring.deriveFrom('lost', 'a'), /ENCRYPTION_KEYS has no key "lost"/);
  });

  it('is never empty', () => {
    assert.throws(() => new KeyRing([]), /at least one key/);
  });
});

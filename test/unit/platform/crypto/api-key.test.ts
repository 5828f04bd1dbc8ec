import assert from 'node:assert/strict';
import {
  apiKeyHasher,
  apiKeyHint,
  generateApiKey,
  readApiKeyMode,
} from '../../../../platform/crypto/api-key.ts';
import { KeyRing } from '../../../../platform/crypto/key-ring.ts';

const MODES = ['test', 'live'] as const;

describe('API keys', () => {
  it('have the prefix of their mode, at least 32 random ones of 62 characters and a checksum', () => {
    for (const mode of MODES) {
      const keys = Array.from({ length: 4_000 }, () => generateApiKey(mode));
      assert.equal(new Set(keys).size, keys.length);
      for (const key of keys) {
        assert.match(key, new RegExp(`^sk_${mode}_[0-9A-Za-z]{42}$`));
        assert.equal(readApiKeyMode(key), mode);
      }
      for (const place of [8, 25, 43]) assert.equal(new Set(keys.map((key) => key[place])).size, 62);
    }
  });

  it('are recognised as mistyped without a look-up if a character is wrong, swapped or missing', () => {
    for (let i = 0; i < 50; i++) {
      const key = generateApiKey('live');
      for (let at = 0; at < key.length; at++) {
        const other = key[at] === 'a' ? 'b' : 'a';
        assert.equal(readApiKeyMode(key.slice(0, at) + other + key.slice(at + 1)), undefined);
        assert.equal(readApiKeyMode(key.slice(0, at) + key.slice(at + 1)), undefined);
        const [left, right] = [key[at], key[at + 1]];
        if (right === undefined || left === right) continue;
        assert.equal(readApiKeyMode(key.slice(0, at) + right + left + key.slice(at + 2)), undefined);
      }
    }
  });

  it('are refused with anything before or after them', () => {
    const key = generateApiKey('test');
    const mistyped = [
      '',
      ` ${key}`,
      `${key} `,
      `${key}\n`,
      `x${key}`,
      key.replace('test', 'live'),
      'sk_test_',
    ];
    for (const other of mistyped) assert.equal(readApiKeyMode(other), undefined);
  });

  it('have a hint that reveals nothing of their secret', () => {
    const key = generateApiKey('test');
    assert.equal(apiKeyHint(key), `sk_test_…${key.slice(-4)}`);
  });

  it("are hashed with the key ring's secret, and a rotated ring tries both", () => {
    const [one, two] = [1, 2].map((byte) => ({ id: `k${byte}`, secret: Buffer.alloc(32, byte) })) as [
      { id: string; secret: Buffer },
      { id: string; secret: Buffer },
    ];
    const key = generateApiKey('test');
    const hashes = (...keys: { id: string; secret: Buffer }[]) => apiKeyHasher(new KeyRing(keys))(key);
    assert.deepEqual(hashes(one), hashes(one));
    assert.notDeepEqual(hashes(one), hashes(two));
    assert.deepEqual(hashes(two, one), [...hashes(two), ...hashes(one)]);
  });
});

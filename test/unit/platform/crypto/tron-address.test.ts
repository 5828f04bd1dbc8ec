import assert from 'node:assert/strict';
import { pbkdf2Sync } from 'node:crypto';
import { HDKey } from '@scure/bip32';
import {
  deriveDepositAddress,
  tronAddressHash,
  xpubProblem,
} from '../../../../platform/crypto/tron-address.ts';

/** Public mnemonics, and the addresses /0/0 and /0/1 below their account m/44'/195'/0'. */
const VECTORS = [
  {
    mnemonic: `${'test '.repeat(11)}junk`,
    addresses: ['TWer2Ygk5TEheHp3TPuYeqxmB6SsGZmaL6', 'TPjjvMwjPoDC32V2dGDYTkLH4E5LAtBZ6C'],
  },
  {
    mnemonic: `${'abandon '.repeat(11)}about`,
    addresses: ['TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH', 'TSeJkUh4Qv67VNFwY8LaAxERygNdy6NQZK'],
  },
];
const keyOf = (mnemonic: string, path: string) =>
  HDKey.fromMasterSeed(pbkdf2Sync(mnemonic, 'mnemonic', 2_048, 64, 'sha512')).derive(path);
const MNEMONIC = VECTORS[0]?.mnemonic ?? '';
const XPUB = keyOf(MNEMONIC, "m/44'/195'/0'").publicExtendedKey;

describe('a deposit address', () => {
  it('is child /0/i of the account, as TRON wallets derive it', () => {
    for (const { mnemonic, addresses } of VECTORS) {
      const xpub = keyOf(mnemonic, "m/44'/195'/0'").publicExtendedKey;
      assert.equal(xpubProblem(xpub), null);
      for (const [index, address] of addresses.entries()) {
        const derived = deriveDepositAddress(xpub, index);
        assert.equal(derived.address, address);
        assert.equal(derived.addressHash.length, 20);
        assert.deepEqual(tronAddressHash(address), derived.addressHash);
      }
    }
  });

  it('exists up to the last index that can be derived without the private key', () => {
    assert.match(deriveDepositAddress(XPUB, 2 ** 31 - 1).address, /^T[1-9A-HJ-NP-Za-km-z]{33}$/);
    for (const index of [2 ** 31, -1, 0.5, Number.NaN])
      assert.throws(() => deriveDepositAddress(XPUB, index), String(index));
  });
});

describe('an extended key', () => {
  it('is refused if it is private, and is not repeated in the error', () => {
    const xprv = keyOf(MNEMONIC, "m/44'/195'/0'").privateExtendedKey;
    const problem = xpubProblem(xprv) ?? '';
    assert.match(problem, /private key/);
    assert.ok(!problem.includes(xprv.slice(4, 12)));
  });

  it("is refused if it is not an account's, because no wallet would look for the money there", () => {
    const paths = ['m', "m/44'", "m/44'/195'", "m/44'/195'/0'/0", "m/44'/195'/0"];
    for (const path of paths)
      assert.match(xpubProblem(keyOf(MNEMONIC, path).publicExtendedKey) ?? '', /of an account/, path);
    assert.equal(xpubProblem(keyOf(MNEMONIC, "m/44'/195'/7'").publicExtendedKey), null);
  });

  it('is refused if a character is wrong, missing, or one too many', () => {
    const wrong = ['', 'xpub', XPUB.slice(1), XPUB.slice(0, -1), `${XPUB}1`, `${XPUB} `, XPUB.toLowerCase()];
    for (const text of [...wrong, 'x'.repeat(1_000_000), 'TWer2Ygk5TEheHp3TPuYeqxmB6SsGZmaL6'])
      assert.match(xpubProblem(text) ?? '', /checksum/, text.slice(0, 200));
  });
});

describe('a TRON address', () => {
  it('is valid only if it has 21 bytes that begin with 41, and their checksum', () => {
    const address = VECTORS[0]?.addresses[0] ?? '';
    const wrong = ['', address.slice(1), address.slice(0, -1), `${address}1`, address.toLowerCase(), XPUB];
    // The same bytes of another chain: the prefix is Bitcoin's.
    for (const text of [...wrong, '1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2', `0${address}`])
      assert.equal(tronAddressHash(text), null, text);
  });
});

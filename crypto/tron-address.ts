import { secp256k1 } from '@noble/curves/secp256k1.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { createBase58check } from '@scure/base';
import { HARDENED_OFFSET, HDKey } from '@scure/bip32';

const base58check = createBase58check(sha256);
/** What an address's 21 bytes begin with, on every network. */
const ADDRESS_PREFIX = 0x41;
/** m/44'/195'/0': purpose, coin, account. */
const ACCOUNT_DEPTH = 3;

interface TronAddress {
  /** 34 characters, `T…`. */
  address: string;
  /** The 20 bytes that logs on the chain have of it. */
  addressHash: Buffer;
}

/**
 * The address of child /0/`index` of an account.
 * @param xpub one that {@link xpubProblem} has nothing against
 * @param index 0 to 2^31 - 1
 */
export function deriveDepositAddress(xpub: string, index: number): TronAddress {
  const { publicKey } = HDKey.fromExtendedKey(xpub).deriveChild(0).deriveChild(index);
  if (publicKey === null) throw new Error('an extended key without a public key');
  // The hash is of both coordinates, without the byte that says so.
  const point = secp256k1.Point.fromBytes(publicKey).toBytes(false).subarray(1);
  const addressHash = Buffer.from(keccak_256(point).subarray(-20));
  return { address: tronAddress(addressHash), addressHash };
}

/** `T…` of the 20 bytes. */
export function tronAddress(addressHash: Buffer): string {
  return base58check.encode(Buffer.of(ADDRESS_PREFIX, ...addressHash));
}

/** The 20 bytes of `T…`; null if it isn't an address. */
export function tronAddressHash(address: string): Buffer | null {
  const bytes = decodeChecked(address);
  return bytes?.length === 21 && bytes[0] === ADDRESS_PREFIX ? Buffer.from(bytes.subarray(1)) : null;
}

/**
 * Why addresses can't be derived from it; null if they can. Only an account's key will do: wallets look for their
 * money below m/44'/195'/0'/0, and would not find what was paid to the children of any other key.
 */
export function xpubProblem(xpub: string): string | null {
  if (/^[a-z]prv/i.test(xpub))
    return 'is a private key (xprv): the service must never have one; take the account xpub';
  const key = decodeExtendedKey(xpub);
  if (key === null) return 'must be an account xpub: xpub… with 111 characters, and its checksum right';
  if (key.depth !== ACCOUNT_DEPTH || key.index < HARDENED_OFFSET)
    return `must be the xpub of an account, m/44'/195'/0': this key's depth is ${key.depth}, and an account's 3`;
  return null;
}

function decodeExtendedKey(xpub: string): HDKey | null {
  // Checked first, since a long text takes base58 a time that grows with its square.
  if (decodeChecked(xpub) === null) return null;
  try {
    return HDKey.fromExtendedKey(xpub);
  } catch {
    return null;
  }
}

function decodeChecked(text: string): Uint8Array | null {
  if (text.length > 120) return null;
  try {
    return base58check.decode(text);
  } catch {
    return null;
  }
}

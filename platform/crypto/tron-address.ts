import { secp256k1 } from '@noble/curves/secp256k1.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { createBase58check } from '@scure/base';
import { HARDENED_OFFSET, HDKey } from '@scure/bip32';

const base58check = createBase58check(sha256);
/** The first of an address's 21 bytes, on every TRON network. */
const ADDRESS_PREFIX = 0x41;
/** m/44'/195'/0': purpose, coin, account. */
const ACCOUNT_DEPTH = 3;

interface TronAddress {
  /** 34 characters, `T…`. */
  address: string;
  /** The 20 bytes that represent it in the chain's logs. */
  addressHash: Buffer;
}

/**
 * The address of child /0/`index` of an account.
 * @param xpub one that {@link xpubProblem} accepts
 * @param index 0 to 2^31 - 1
 */
export function deriveDepositAddress(xpub: string, index: number): TronAddress {
  const { publicKey } = HDKey.fromExtendedKey(xpub).deriveChild(0).deriveChild(index);
  if (publicKey === null) throw new Error('an extended key without a public key');
  // The hash covers both coordinates, without the prefix byte.
  const point = secp256k1.Point.fromBytes(publicKey).toBytes(false).subarray(1);
  const addressHash = Buffer.from(keccak_256(point).subarray(-20));
  return { address: tronAddress(addressHash), addressHash };
}

/** The `T…` form of the 20 bytes. */
export function tronAddress(addressHash: Buffer): string {
  return base58check.encode(Buffer.of(ADDRESS_PREFIX, ...addressHash));
}

/** The 20 bytes of a `T…` address; null if it isn't one. */
export function tronAddressHash(address: string): Buffer | null {
  const bytes = decodeChecked(address);
  return bytes?.length === 21 && bytes[0] === ADDRESS_PREFIX ? Buffer.from(bytes.subarray(1)) : null;
}

/**
 * Why addresses can't be derived from this key; null if they can. It has to be an account's key: wallets look
 * for money below m/44'/195'/0'/0, and would not find payments to children of any other key.
 */
export function xpubProblem(xpub: string): string | null {
  if (/^[a-z]prv/i.test(xpub))
    return 'is a private key (xprv), which the service must never have: use the account xpub';
  const key = decodeExtendedKey(xpub);
  if (key === null) return 'must be an account xpub: xpub…, 111 characters, with a valid checksum';
  if (key.depth !== ACCOUNT_DEPTH || key.index < HARDENED_OFFSET)
    return `must be the xpub of an account, m/44'/195'/0': this key has depth ${key.depth} instead of 3`;
  return null;
}

function decodeExtendedKey(xpub: string): HDKey | null {
  // This also limits the length, because base58 takes quadratic time.
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

import { createHash } from 'node:crypto';
import { tronAddress, tronAddressHash } from '../../platform/crypto/tron-address.ts';

/** @returns the 20 bytes of `T…`, in hex, as in logs; null if it isn't an address */
export function addressHash(address: string): string | null {
  return tronAddressHash(address)?.toString('hex') ?? null;
}

/** The address `T…` of 20 bytes, given in hex. */
export function toBase58Address(hash: string): string {
  return tronAddress(Buffer.from(hash, 'hex'));
}

/** The 21 bytes, in hex, as in transactions and headers. */
export function hash41(hash: string): string {
  return `41${hash}`;
}

/** The 20 bytes, in hex, of a made-up account or contract with this name. */
export function hashName(name: string): string {
  return createHash('sha256').update(`fake TRON: ${name}`).digest('hex').slice(0, 40);
}

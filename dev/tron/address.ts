import { createHash } from 'node:crypto';
import { tronAddress, tronAddressHash } from '../../crypto/tron-address.ts';

/** @returns the 20 bytes of `T…`, in hex, as logs have them; null if it isn't an address */
export function addressHash(address: string): string | null {
  return tronAddressHash(address)?.toString('hex') ?? null;
}

/** `T…` of the 20 bytes in hex. */
export function addressOf(hash: string): string {
  return tronAddress(Buffer.from(hash, 'hex'));
}

/** As transactions and headers have it: 21 bytes, in hex. */
export function hash41(hash: string): string {
  return `41${hash}`;
}

/** The 20 bytes of an account or a contract that is only a name. */
export function hashOfName(name: string): string {
  return createHash('sha256').update(`fake TRON: ${name}`).digest('hex').slice(0, 40);
}

import { createHash } from 'node:crypto';
import { createBase58check } from '@scure/base';

const base58check = createBase58check((data: Uint8Array) => createHash('sha256').update(data).digest());
const PREFIX = 0x41;
const BYTES = 21;

/** @returns the 20 bytes, in hex, that logs have of an address; null where the text is not an address */
export function addressHash(base58: string): string | null {
  const bytes = decode(base58);
  if (bytes === null || bytes.length !== BYTES || bytes[0] !== PREFIX) return null;
  return Buffer.from(bytes.subarray(1)).toString('hex');
}

/** `T…` of the 20 bytes in hex. */
export function addressOf(hash: string): string {
  return base58check.encode(Buffer.from(hash41(hash), 'hex'));
}

/** As transactions and headers have it: 21 bytes, in hex. */
export function hash41(hash: string): string {
  return PREFIX.toString(16) + hash;
}

/** The 20 bytes of an account or a contract that is only a name. */
export function hashOfName(name: string): string {
  return createHash('sha256').update(`fake TRON: ${name}`).digest('hex').slice(0, 40);
}

function decode(text: string): Uint8Array | null {
  try {
    return base58check.decode(text);
  } catch (error) {
    // What @scure/base throws at a foreign letter or a wrong checksum.
    if (error instanceof Error) return null;
    throw error;
  }
}

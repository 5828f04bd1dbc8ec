import { randomBytes } from 'node:crypto';
import { decodeTime, encodeTime, TIME_MAX } from 'ulid';
import type { Id, IdPrefix } from '../../domain/ids.ts';

/**
 * `<prefix>_<26 characters>`: 48 bits of time first, so ids sort by age, then 80 random bits, so they can't
 * be guessed. Those that a process makes in one millisecond sort in the order in which they were made.
 * @param at of something that is dated otherwise: its ids of one millisecond sort by chance
 */
export function newId<P extends IdPrefix>(prefix: P, at?: Date): Id<P> {
  const random = at === undefined ? nextRandom(Date.now()) : { timeMs: at.getTime(), bits: randomBits(10) };
  return `${prefix}_${encodeTime(random.timeMs, 10).toLowerCase()}${encodeBits(random.bits)}`;
}

const randomBits = (bytes: number): bigint => BigInt(`0x${randomBytes(bytes).toString('hex')}`);

let last = { timeMs: 0, bits: 0n };

/**
 * Above the last one of the same millisecond by 64 random bits, and otherwise so far below the end that it
 * never gets there.
 */
function nextRandom(timeMs: number): typeof last {
  const bits = timeMs === last.timeMs ? last.bits + randomBits(8) + 1n : randomBits(10) >> 1n;
  last = { timeMs, bits };
  return last;
}

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';

/** 80 bits as 16 characters. */
function encodeBits(bits: bigint): string {
  const digits = bits.toString(32).padStart(16, '0');
  let encoded = '';
  for (const digit of digits) encoded += ALPHABET[Number.parseInt(digit, 32)];
  return encoded;
}

/**
 * When an id was generated, to the millisecond. Resources that are listed by id use it as `created`, so that
 * both agree.
 */
export const readIdTime = (id: string): Date => new Date(decodeTime(id.slice(id.indexOf('_') + 1)));

/** The lowest possible id at a time: ids generated from then on are not below it. */
export function lowestId<P extends IdPrefix>(prefix: P, at: Date): Id<P> {
  const timeMs = Math.min(Math.max(at.getTime(), 0), TIME_MAX);
  return `${prefix}_${encodeTime(timeMs, 10).toLowerCase()}${'0'.repeat(16)}`;
}

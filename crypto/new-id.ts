import { randomBytes } from 'node:crypto';
import { decodeTime, encodeTime, TIME_MAX, ulid } from 'ulid';
import type { Id, IdPrefix } from '../domain/ids.ts';

/** `<prefix>_<26 characters>`: 48 bits of time first, so ids sort by age, then 80 random bits, so they can't be guessed. */
export function newId<P extends IdPrefix>(prefix: P): Id<P> {
  // Fetched at once: by itself the library asks the system for each of its 16 characters.
  const random = randomBytes(16).values();
  return `${prefix}_${ulid(Date.now(), () => Number(random.next().value) / 256).toLowerCase()}`;
}

/** When an id was made, to the millisecond: what is listed by id and says when it was created says this. */
export const timeOf = (id: string): Date => new Date(decodeTime(id.slice(id.indexOf('_') + 1)));

/** The lowest id of a moment: what was made from then on has ids from there on. */
export function lowestId<P extends IdPrefix>(prefix: P, at: Date): Id<P> {
  const timeMs = Math.min(Math.max(at.getTime(), 0), TIME_MAX);
  return `${prefix}_${encodeTime(timeMs, 10).toLowerCase()}${'0'.repeat(16)}`;
}

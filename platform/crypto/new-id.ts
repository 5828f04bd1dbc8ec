import { randomBytes } from 'node:crypto';
import { decodeTime, encodeTime, TIME_MAX, ulid } from 'ulid';
import type { Id, IdPrefix } from '../../domain/ids.ts';

/** `<prefix>_<26 characters>`: 48 bits of time first, so ids sort by age, then 80 random bits, so they can't be guessed. */
export function newId<P extends IdPrefix>(prefix: P, at: Date = new Date()): Id<P> {
  // One call for all of them: by default, the library asks the system for each of its 16 characters.
  const random = randomBytes(16).values();
  return `${prefix}_${ulid(at.getTime(), () => Number(random.next().value) / 256).toLowerCase()}`;
}

/** When an id was generated, to the millisecond. Resources that are listed by id use it as `created`, so that both agree. */
export const readIdTime = (id: string): Date => new Date(decodeTime(id.slice(id.indexOf('_') + 1)));

/** The lowest possible id at a time: ids generated from then on are not below it. */
export function lowestId<P extends IdPrefix>(prefix: P, at: Date): Id<P> {
  const timeMs = Math.min(Math.max(at.getTime(), 0), TIME_MAX);
  return `${prefix}_${encodeTime(timeMs, 10).toLowerCase()}${'0'.repeat(16)}`;
}

import { randomBytes } from 'node:crypto';
import { ulid } from 'ulid';
import type { Id, IdPrefix } from '../domain/ids.ts';

/** `<prefix>_<26 characters>`: 48 bits of time first, so ids sort by age, then 80 random bits, so they can't be guessed. */
export function newId<P extends IdPrefix>(prefix: P): Id<P> {
  // Fetched at once: by itself the library asks the system for each of its 16 characters.
  const random = randomBytes(16).values();
  return `${prefix}_${ulid(Date.now(), () => Number(random.next().value) / 256).toLowerCase()}`;
}

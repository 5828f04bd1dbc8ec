import { ulid } from 'ulid';
import type { Id, IdPrefix } from '../domain/ids.ts';

/** `<prefix>_<26 characters>`: 48 bits of time first, so ids sort by age, then 80 random bits, so they can't be guessed. */
export function newId<P extends IdPrefix>(prefix: P): Id<P> {
  return `${prefix}_${ulid().toLowerCase()}`;
}

import { ulid } from 'ulid';

/** Prefixes of the public ids (decisions.md, "Envelope"). */
export type IdPrefix =
  | 'card'
  | 'topup'
  | 'txn'
  | 'btx'
  | 'dep'
  | 'evt'
  | 'prt'
  | 'key'
  | 'req'
  | 'claim'
  | 'adj'
  | 'aud';

/** `<prefix>_<26 characters>`: 48 bits of time first, so ids sort by age, then 80 random bits, so they can't be guessed. */
export function newId<P extends IdPrefix>(prefix: P): `${P}_${string}` {
  return `${prefix}_${ulid().toLowerCase()}`;
}

/** The id of the same birth under another prefix: a claim and the resource it will make share their digits. */
export function siblingId<P extends IdPrefix>(prefix: P, id: string): `${P}_${string}` {
  return `${prefix}_${id.slice(id.indexOf('_') + 1)}`;
}

/** Whether a string has the shape of an id with this prefix. Another shape can't exist and needs no query. */
export function isId(prefix: IdPrefix, value: string): boolean {
  return (
    value.length === prefix.length + 27 &&
    value.startsWith(`${prefix}_`) &&
    /^[0-9a-hjkmnp-tv-z]{26}$/.test(value.slice(prefix.length + 1))
  );
}

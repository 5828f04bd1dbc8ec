/** Prefixes of the public ids (docs/partners/versioning.md), and of ids that only operators see. */
const ID_PREFIXES = [
  'card',
  'topup',
  'wdr',
  'txn',
  'auth',
  'btx',
  'dep',
  'evt',
  'we',
  'rpl',
  'prt',
  'key',
  'req',
  'op',
  'claim',
  'credit',
  'adj',
  'rec',
  'tru',
  'aud',
  'rvl',
  'wbs',
] as const;
export type IdPrefix = (typeof ID_PREFIXES)[number];

export type Id<P extends IdPrefix> = `${P}_${string}`;

const DIGITS = '[0-9a-hjkmnp-tv-z]{26}';
const SHAPE = new RegExp(`^${DIGITS}$`);

/** A regular expression for ids with this prefix. */
export const idPattern = (prefix: IdPrefix): string => `^${prefix}_${DIGITS}$`;

/**
 * Whether a string has the shape of an id with this prefix. If not, it can't exist, and no query is needed.
 */
export function isId<P extends IdPrefix>(prefix: P, value: string): value is Id<P> {
  return value.startsWith(`${prefix}_`) && SHAPE.test(value.slice(prefix.length + 1));
}

/** Whether a string has the shape of an id of ours. */
export const isAnyId = (value: string): boolean => ID_PREFIXES.some((prefix) => isId(prefix, value));

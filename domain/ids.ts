/**
 * What an id is of, by its prefix: those of the public ids (docs/partners/versioning.md), and of ids that
 * only operators see.
 */
const OBJECTS = {
  card: 'card',
  topup: 'topup',
  wdr: 'withdrawal',
  txn: 'transaction',
  auth: 'authorization',
  btx: 'balance_transaction',
  dep: 'deposit',
  evt: 'event',
  we: 'webhook_endpoint',
  rpl: 'webhook_replay',
  prt: 'partner',
  key: 'api_key',
  req: 'request',
  op: 'operation',
  claim: 'claim',
  credit: 'faucet_credit',
  adj: 'adjustment',
  rec: 'finding',
  tru: 'true_up',
  aud: 'audit_entry',
  rvl: 'reveal_link',
  wbs: 'workbench_session',
} as const;
export type IdPrefix = keyof typeof OBJECTS;

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
export const isAnyId = (value: string): boolean =>
  Object.keys(OBJECTS).some((prefix) => isId(prefix as IdPrefix, value));

/** What an id of ours is of. */
export const objectOf = (id: string): string | undefined => OBJECTS[id.slice(0, id.indexOf('_')) as IdPrefix];

import { type IdPrefix, isId } from './ids.ts';

/** An operator's change was refused. The message says why and what to do next, and contains no secret. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
}

/**
 * The refusal of an unknown id. Text that does not look like an id is not repeated: it could be a key pasted
 * by mistake.
 * @param next what to do, such as `run "operator partner list"`
 */
export function unknownId(prefix: IdPrefix, id: string, next: string): Refusal {
  const known = NOUNS[prefix] ?? prefix;
  if (isId(prefix, id)) return new Refusal(`There is no ${known} ${id}: ${next}.`);
  return new Refusal(`This is not the id of a ${known} (${prefix}_ and 26 letters or digits): ${next}.`);
}

const NOUNS: Partial<Record<IdPrefix, string>> = {
  prt: 'partner',
  topup: 'top-up',
  wdr: 'withdrawal',
  txn: 'transaction',
  auth: 'authorization',
  evt: 'event',
  dep: 'deposit',
  rec: 'finding of the reconciliation',
  adj: 'adjustment that waits for a second operator',
};

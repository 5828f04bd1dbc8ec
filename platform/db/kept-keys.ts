import type { KeyRing } from '../crypto/key-ring.ts';
import type { Orm } from './orm.ts';
import { readStatement } from './sql.ts';

/**
 * Loads what is kept of former keys when it is first needed, for a process that starts without PostgreSQL.
 * @returns a function that does {@link loadKeptKeys} once; after a failure, the next call tries again
 */
export function keptKeys(orm: Orm, ring: KeyRing): () => Promise<void> {
  let loaded: Promise<void> | undefined;
  return () => {
    loaded ??= loadKeptKeys(orm, ring).catch((error) => {
      loaded = undefined;
      throw error;
    });
    return loaded;
  };
}

/**
 * Gives the ring what is derived from keys that have left it, so that the API keys and test cards made under
 * them stay valid. A process does this once, before it derives anything.
 * @throws Error if one is sealed under a key that is not in the ring
 */
export async function loadKeptKeys(orm: Orm, ring: KeyRing): Promise<void> {
  const kept = await all(orm.em.fork(), {});
  for (const { id, root } of kept) ring.keep(id, root);
}

const all = readStatement((db) => db.selectFrom('ring_key').select(['id', 'root']).orderBy('id'));

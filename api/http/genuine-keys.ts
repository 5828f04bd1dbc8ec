import { LRUCache } from 'lru-cache';
import { keyIsUsable } from '../../accounts/api-keys.ts';
import { lowestId } from '../../platform/crypto/new-id.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { readStatement } from '../../platform/db/sql.ts';

/**
 * How many genuine keys a process knows by their hashes, the newest ones. More than that take the strangers'
 * turns.
 */
const MAX_KNOWN_KEYS = 200_000;
const KEYS_AT_ONCE = 10_000;
/** How often new keys are read while unknown keys arrive. */
const REFRESH_MS = 1_000;
/** A key that was inserted earlier may be committed later, by this much at most. */
const COMMIT_DELAY_MS = 60_000;

/**
 * The keyed hashes of the keys that can be used, which tell a genuine key from a made-up one without asking
 * the database for it.
 */
export class GenuineKeys {
  readonly #orm: Orm;
  readonly #now: () => number;
  // With `max`, it would be allocated as a whole.
  readonly #known = new LRUCache<string, true>({ maxSize: MAX_KNOWN_KEYS, sizeCalculation: () => 1 });
  /** The keys generated before this are known. */
  #knownUntil = new Date(0);
  #refreshedAtMs = Number.NEGATIVE_INFINITY;
  #refreshing: Promise<void> | undefined;

  constructor(orm: Orm, now: () => number) {
    this.#orm = orm;
    this.#now = now;
  }

  async has(hashes: readonly Buffer[]): Promise<boolean> {
    if (this.#hasNow(hashes)) return true;
    if (this.#now() - this.#refreshedAtMs < REFRESH_MS) return false;
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = undefined;
    });
    await this.#refreshing;
    return this.#hasNow(hashes);
  }

  forget(hashes: readonly Buffer[]): void {
    for (const one of hashes) this.#known.delete(one.toString('base64'));
  }

  #hasNow(hashes: readonly Buffer[]): boolean {
    return hashes.some((one) => this.#known.has(one.toString('base64')));
  }

  async #refresh(): Promise<void> {
    const startedAt = Date.now();
    let after: string = lowestId('key', this.#knownUntil);
    for (;;) {
      const keys = await keysAfter(this.#orm.em.fork(), { after, limit: KEYS_AT_ONCE });
      for (const key of keys) this.#known.set(key.hash.toString('base64'), true);
      if (keys.length < KEYS_AT_ONCE) break;
      after = keys[keys.length - 1]?.id ?? after;
    }
    this.#knownUntil = new Date(startedAt - COMMIT_DELAY_MS);
    this.#refreshedAtMs = this.#now();
  }
}

const keysAfter = readStatement(
  (db, { after, limit }: { after: string; limit: number }) =>
    db
      .selectFrom('api_key')
      .select(['id', 'hash'])
      .where('id', '>', after)
      .where(keyIsUsable('api_key'))
      .orderBy('id')
      .limit(limit),
  { acrossTenants: 'key' },
);

import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { modeOfApiKey } from '../db/api-key.ts';
import type { Orm } from '../db/orm.ts';
import { query } from '../db/sql.ts';
import { ApiError } from '../domain/api-error.ts';
import type { Mode } from '../domain/mode.ts';
import type { Caller } from './caller.ts';

/** A revoked key may still work for this long (decisions.md, "Keys": at most 5 s). */
const CACHE_MS = 2_000;

export type Authenticate = (authorization: string | undefined) => Promise<Caller>;

/**
 * Knows callers by their API key. Only keyed hashes are compared; a key that is no key of ours by its
 * checksum costs no query.
 * @throws ApiError `invalid_api_key`
 */
export function createAuthenticate(orm: Orm, hashes: (key: string) => Buffer[]): Authenticate {
  const known = new LRUCache<string, Caller>({ max: 10_000, ttl: CACHE_MS });

  return async (authorization) => {
    const key = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
    if (key === undefined || modeOfApiKey(key) === undefined) throw new ApiError('invalid_api_key');
    // The cache holds no key either; a plain digest of 214 random bits is enough within the process.
    const cacheKey = hash('sha256', key, 'base64');
    let caller = known.get(cacheKey);
    if (caller === undefined) {
      caller = await readCaller(orm, hashes(key));
      known.set(cacheKey, caller);
    }
    return caller;
  };
}

async function readCaller(orm: Orm, hashes: Buffer[]): Promise<Caller> {
  const [row] = await query<{ key_id: string; partner_id: string; mode: Mode; name: string }>(
    orm.em.fork(),
    `SELECT k.id AS key_id, k.partner_id, k.mode, p.name FROM api_key k JOIN partner p ON p.id = k.partner_id
     WHERE k.hash = ANY($1) AND k.revoked_at IS NULL`,
    [hashes],
  );
  if (row === undefined) throw new ApiError('invalid_api_key');
  return { partnerId: row.partner_id, partnerName: row.name, mode: row.mode, keyId: row.key_id };
}

import { hash } from 'node:crypto';
import { sql } from 'kysely';
import { LRUCache } from 'lru-cache';
import type { Scope } from '../../accounts/scope-rules.ts';
import { ApiError } from '../../domain/api-error.ts';
import { type CidrBlock, parseBlock } from '../../domain/ip-address.ts';
import type { Mode, Tenant } from '../../domain/mode.ts';
import { isApiKeyShaped, readApiKeyMode } from '../../platform/crypto/api-key.ts';
import { lowestId } from '../../platform/crypto/new-id.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { anyOf, readStatement } from '../../platform/db/sql.ts';
import type { Admission } from './admission.ts';

/**
 * A revoked key, or a suspended account's, may still work for this long: docs/partners/keys-and-modes.md
 * promises 5 s.
 */
const CACHE_MS = 2_000;

/**
 * Keys that may be made up are looked up on behalf of one pseudo-account, so that a flood of them slows
 * nobody else.
 */
const STRANGERS = 'strangers';

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

/** Who sent a request: an account in one mode, with one of its keys. */
export interface Caller extends Tenant {
  partnerName: string;
  keyId: string;
  /** What the key may do. */
  scopes: readonly Scope[];
  /** From where the key may be used; null: from everywhere. */
  ipAllowlist: readonly CidrBlock[] | null;
  /** Whether the account is suspended, so that its keys may do nothing. */
  isSuspended: boolean;
}

export type Authenticate = (authorization: string | undefined) => Promise<Caller>;

/** A caller that was read, and until when that counts. */
interface Known {
  caller: Caller;
  goodUntilMs: number;
}

/** When each key was last used, since the process last recorded it. */
export type KeyUses = Map<string, number>;

/**
 * Finds callers by their API key. Only keyed hashes are compared. A key with a wrong checksum costs no query,
 * and concurrent requests with one key share one.
 * @param now milliseconds of a monotonic clock
 * @throws ApiError `invalid_api_key`; for a key that does not exist, also what {@link Admission} throws
 */
export function createAuthenticate(
  orm: Orm,
  hashes: (key: string) => Promise<Buffer[]>,
  admission: Admission,
  now: () => number = () => performance.now(),
): Authenticate {
  const seen = new LRUCache<string, Known>({ max: 10_000 });
  const lookUps = new Map<string, Promise<Caller>>();
  const genuine = new GenuineKeys(orm, now);

  return async (authorization) => {
    const key = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
    const mode = key === undefined ? undefined : readApiKeyMode(key);
    if (key === undefined || mode === undefined) throw malformed(authorization ?? '', key);
    // Keys stay out of the cache too. Within the process, a plain digest of 214 random bits is enough.
    const digest = hash('sha256', key, 'base64');
    const known = seen.get(digest);
    if (known !== undefined && now() < known.goodUntilMs) return known.caller;
    const underWay = lookUps.get(digest);
    if (underWay !== undefined) return underWay;
    const lookUp = known === undefined ? lookUpFirst(digest, key, mode) : lookUpNow(digest, key);
    lookUps.set(digest, lookUp);
    return lookUp.finally(() => lookUps.delete(digest));
  };

  async function lookUpNow(digest: string, key: string): Promise<Caller> {
    const readAtMs = now();
    const keyHashes = await hashes(key);
    const found = await readCaller(orm, keyHashes);
    if (found === undefined) {
      seen.delete(digest);
      // Revoked and expired keys stay so, and an account can make many: from now on, they wait among the
      // strangers.
      genuine.forget(keyHashes);
      throw new ApiError('invalid_api_key', {
        message:
          "The API key is unknown, revoked or expired. Check that it is one of this service's keys and still in use.",
      });
    }
    const { caller, expiresInMs } = found;
    seen.set(digest, { caller, goodUntilMs: readAtMs + Math.min(CACHE_MS, expiresInMs) });
    return caller;
  }

  /**
   * A genuine key never waits behind made-up ones, not even after a restart, when this process has seen none
   * yet.
   */
  async function lookUpFirst(digest: string, key: string, mode: Mode): Promise<Caller> {
    const isGenuine = await genuine.has(await hashes(key));
    return isGenuine ? lookUpNow(digest, key) : lookUpInTurn(digest, key, mode);
  }

  async function lookUpInTurn(digest: string, key: string, mode: Mode): Promise<Caller> {
    const visit = arriveAsStranger(mode);
    try {
      await visit.begin(false);
      return await lookUpNow(digest, key);
    } finally {
      visit.end();
    }
  }

  /** Made-up keys have no account, so a refusal must not say that their account has sent too much. */
  function arriveAsStranger(mode: Mode) {
    try {
      return admission.arrive({ partnerId: STRANGERS, mode });
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'rate_limited') throw error;
      throw new ApiError('rate_limited', {
        message:
          'Too many API keys that this service does not know are being looked up at the moment, and this is one of them. ' +
          'Check the key. If it is new, retry after the number of seconds in Retry-After, with the same Idempotency-Key.',
        retryAfterSeconds: 1,
      });
    }
  }
}

/**
 * The keyed hashes of the keys that can be used, which tell a genuine key from a made-up one without asking
 * the database for it.
 */
class GenuineKeys {
  readonly #orm: Orm;
  readonly #now: () => number;
  readonly #known = new LRUCache<string, true>({ max: MAX_KNOWN_KEYS });
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

/** Expiry is in the account's time. Evaluated in this order, a key without one costs no look at the clock. */
const notExpired = (key: string) => sql<boolean>`CASE WHEN ${sql.ref(`${key}.expires_at`)} IS NULL THEN true
  ELSE ${sql.ref(`${key}.expires_at`)} > account_now(${sql.ref(`${key}.partner_id`)},
    ${sql.ref(`${key}.mode`)}) END`;

const keysAfter = readStatement(
  (db, { after, limit }: { after: string; limit: number }) =>
    db
      .selectFrom('api_key')
      .select(['id', 'hash'])
      .where('id', '>', after)
      .where('revoked_at', 'is', null)
      .where(notExpired('api_key'))
      .orderBy('id')
      .limit(limit),
  { acrossTenants: 'key' },
);

/**
 * What anybody can tell from the header alone, so saying it gives nothing away. It never repeats the header.
 */
function malformed(authorization: string, key: string | undefined): ApiError {
  const send = 'Send Authorization: Bearer <API_KEY>.';
  if (authorization === '')
    return new ApiError('invalid_api_key', { message: `The Authorization header is missing. ${send}` });
  if (!/^Bearer( |$)/i.test(authorization))
    return new ApiError('invalid_api_key', {
      message: `The Authorization header does not begin with Bearer and a space. ${send}`,
    });
  if (key === undefined)
    return new ApiError('invalid_api_key', {
      message: `The Authorization header must have exactly one key after Bearer. ${send}`,
    });
  if (!isApiKeyShaped(key))
    return new ApiError('invalid_api_key', {
      message:
        'What follows Bearer is not an API key: a key is sk_test_ or sk_live_ and 42 letters and digits. Check that ' +
        'it was copied whole.',
    });
  return new ApiError('invalid_api_key', {
    message: 'The API key is mistyped: its checksum does not match. Copy it again.',
  });
}

async function readCaller(
  orm: Orm,
  hashes: Buffer[],
): Promise<{ caller: Caller; expiresInMs: number } | undefined> {
  const [row] = await callerWith(orm.em.fork(), { hashes });
  if (row === undefined) return undefined;
  const caller: Caller = {
    partnerId: row.partner_id,
    partnerName: row.name,
    mode: row.mode,
    keyId: row.key_id,
    scopes: row.scopes as Scope[],
    // What isn't a block any more opens nothing.
    ipAllowlist: row.ip_allowlist?.map(parseBlock).filter((block) => block !== null) ?? null,
    isSuspended: row.suspended_at !== null,
  };
  return { caller, expiresInMs: row.expires_in_ms ?? Number.POSITIVE_INFINITY };
}

const callerWith = readStatement(
  (db, { hashes }: { hashes: Buffer[] }) =>
    db
      .selectFrom('api_key as k')
      .innerJoin('partner as p', 'p.id', 'k.partner_id')
      .select([
        'k.id as key_id',
        'k.partner_id',
        'k.mode',
        'k.scopes',
        'k.ip_allowlist',
        'p.name',
        'p.suspended_at',
      ])
      .select(
        sql<
          number | null
        >`1000 * extract(epoch from k.expires_at - account_now(k.partner_id, k.mode))::float8`.as(
          'expires_in_ms',
        ),
      )
      .where('k.hash', '=', anyOf(hashes))
      .where('k.revoked_at', 'is', null)
      .where(notExpired('k')),
  { acrossTenants: 'key' },
);

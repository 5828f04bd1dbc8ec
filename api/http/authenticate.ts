import { hash } from 'node:crypto';
import { sql } from 'kysely';
import { LRUCache } from 'lru-cache';
import { keyIsUsable } from '../../accounts/api-keys.ts';
import type { Scope } from '../../accounts/scope-rules.ts';
import { ApiError } from '../../domain/api-error.ts';
import { type CidrBlock, parseBlocks } from '../../domain/ip-address.ts';
import type { Mode, Tenant } from '../../domain/mode.ts';
import { isApiKeyShaped, readApiKeyMode } from '../../platform/crypto/api-key.ts';
import type { TokenPurpose } from '../../platform/crypto/token.ts';
import type { Row } from '../../platform/db/entities.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { anyOf, readStatement } from '../../platform/db/sql.ts';
import { asService } from '../../platform/process/work-context.ts';
import { type Admission, STRANGERS } from './admission.ts';
import { GenuineKeys } from './genuine-keys.ts';

/**
 * A revoked key, or a suspended account's, may still work for this long: docs/partners/keys-and-modes.md
 * promises 5 s.
 */
const CACHE_MS = 2_000;

/** Who sent a request: an account in one mode, with one of its keys. */
export interface Caller extends Tenant {
  partnerName: string;
  keyId: string;
  /** What the key may do. */
  scopes: readonly Scope[];
  /** From where the key may be used; null: from everywhere. */
  ipAllowlist: readonly CidrBlock[] | null;
  /** The workbench session that asks with its key; null if the key itself does. */
  sessionId: string | null;
  /** Whether the account is suspended, so that its keys may do nothing. */
  isSuspended: boolean;
}

/** The cookies of a browser, by the mode of their sessions, with the session that its page names. */
export interface SessionCookies {
  sessionId: string;
  tokens: readonly (readonly [Mode, token: string])[];
}

/** The header Authorization, or a browser's cookies. */
export type Credential = string | undefined | SessionCookies;

export type Authenticate = (credential: Credential) => Promise<Caller>;

/** A caller that was read, and until when that counts. */
interface Known {
  caller: Caller;
  goodUntilMs: number;
}

/** When each key was last used, since the process last recorded it. */
export type KeyUses = Map<string, number>;

/** The keyed hashes that a secret may be stored under, by what it is. */
type Hashes = (secret: string, what: 'api-key' | TokenPurpose) => Promise<Buffer[]>;

/**
 * Finds callers by their API key, or the cookie of a workbench session. Only keyed hashes are compared. A key
 * with a wrong checksum costs no query, and concurrent requests with one key share one.
 * @param now milliseconds of a monotonic clock
 * @throws ApiError `invalid_api_key`, `workbench_session_mismatch`; for a key or cookie that does not exist,
 *   also what {@link Admission} throws
 */
export function createAuthenticate(
  orm: Orm,
  hashes: Hashes,
  admission: Admission,
  now: () => number = () => performance.now(),
): Authenticate {
  const seen = new LRUCache<string, Known>({ max: 10_000 });
  const lookUps = new Map<string, Promise<Caller>>();
  const genuine = new GenuineKeys(orm, now);

  return (credential) =>
    typeof credential === 'object' ? findSession(credential) : findKey(credential ?? '');

  async function findKey(authorization: string): Promise<Caller> {
    const key = /^Bearer +(\S+)$/i.exec(authorization)?.[1];
    const mode = key === undefined ? undefined : readApiKeyMode(key);
    if (key === undefined || mode === undefined) throw malformed(authorization, key);
    // Keys stay out of the cache too. Within the process, a plain digest of 214 random bits is enough.
    const digest = hash('sha256', key, 'base64');
    return once(digest, async (isKnown) => {
      if (isKnown || (await genuine.has(await hashes(key, 'api-key')))) return lookUpKey(digest, key);
      return inTurn(mode, () => lookUpKey(digest, key));
    });
  }

  async function findSession(cookies: SessionCookies): Promise<Caller> {
    const { sessionId, tokens } = cookies;
    const digest = hash('sha256', [sessionId, ...tokens.flat()].join(' '), 'base64');
    const lookUp = async () => {
      const readAtMs = now();
      const hashed = await Promise.all(tokens.map(([mode, token]) => hashes(token, `workbench-${mode}`)));
      return remember(digest, readAtMs, await readSessionCaller(orm, hashed.flat(), sessionId));
    };
    return once(digest, (isKnown) => (isKnown ? lookUp() : inTurn(tokens[0]?.[0] ?? 'test', lookUp)));
  }

  /** What is known, or one look-up for all who ask at the same time. */
  async function once(digest: string, lookUp: (isKnown: boolean) => Promise<Caller>): Promise<Caller> {
    const known = seen.get(digest);
    if (known !== undefined && now() < known.goodUntilMs) return known.caller;
    const underWay = lookUps.get(digest);
    if (underWay !== undefined) return underWay;
    const started = lookUp(known !== undefined);
    lookUps.set(digest, started);
    try {
      return await started;
    } catch (error) {
      // What has ended stays so, and from now on waits among the strangers.
      if (error instanceof ApiError) seen.delete(digest);
      throw error;
    } finally {
      lookUps.delete(digest);
    }
  }

  async function lookUpKey(digest: string, key: string): Promise<Caller> {
    const readAtMs = now();
    const keyHashes = await hashes(key, 'api-key');
    const found = await readCaller(orm, keyHashes);
    if (found === undefined) {
      genuine.forget(keyHashes);
      throw new ApiError('invalid_api_key', {
        message:
          "The API key is unknown, revoked or expired. Check that it is one of this service's keys and still in use.",
      });
    }
    return remember(digest, readAtMs, found);
  }

  function remember(digest: string, readAtMs: number, { caller, expiresInMs }: FoundCaller): Caller {
    seen.set(digest, { caller, goodUntilMs: readAtMs + Math.min(CACHE_MS, expiresInMs) });
    return caller;
  }

  async function inTurn(mode: Mode, lookUp: () => Promise<Caller>): Promise<Caller> {
    const visit = arriveAsStranger(mode);
    try {
      await visit.begin(false);
      return await asService(STRANGERS, lookUp);
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

interface FoundCaller {
  caller: Caller;
  expiresInMs: number;
}

async function readCaller(orm: Orm, hashes: Buffer[]): Promise<FoundCaller | undefined> {
  const [row] = await callerWith(orm.em.fork(), { hashes });
  return row && toCaller(row, null);
}

/**
 * A tab shows the account and mode of one session, so another one's cookie does nothing for it.
 * @throws ApiError `invalid_api_key` if the session has ended, `workbench_session_mismatch`
 */
async function readSessionCaller(orm: Orm, hashes: Buffer[], sessionId: string): Promise<FoundCaller> {
  const sessions = await sessionsWith(orm.em.fork(), { hashes });
  const session = sessions.find(({ id }) => id === sessionId);
  if (session?.is_open) return toCaller(session, session.id);
  if (session === undefined && sessions.some(({ is_open: isOpen }) => isOpen))
    throw new ApiError('workbench_session_mismatch');
  throw new ApiError('invalid_api_key', {
    message: 'This workbench session has ended. Ask for a new link.',
  });
}

interface CallerRow extends Row<'api_key', 'partner_id' | 'mode' | 'scopes' | 'ip_allowlist'> {
  key_id: string;
  name: string;
  suspended_at: string | null;
  expires_in_ms: number | null;
}

function toCaller(row: CallerRow, sessionId: string | null): FoundCaller {
  const caller: Caller = {
    partnerId: row.partner_id,
    partnerName: row.name,
    mode: row.mode,
    keyId: row.key_id,
    scopes: row.scopes as Scope[],
    // What isn't a block any more opens nothing.
    ipAllowlist: row.ip_allowlist && parseBlocks(row.ip_allowlist),
    sessionId,
    isSuspended: row.suspended_at !== null,
  };
  return { caller, expiresInMs: row.expires_in_ms ?? Number.POSITIVE_INFINITY };
}

const KEY_EXPIRES_IN_MS = sql`1000 * extract(epoch from k.expires_at - account_now(k.partner_id, k.mode))::float8`;

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
      .select(sql<number | null>`${KEY_EXPIRES_IN_MS}`.as('expires_in_ms'))
      .where('k.hash', '=', anyOf(hashes))
      .where(keyIsUsable('k')),
  { acrossTenants: 'key' },
);

const sessionsWith = readStatement(
  (_, { hashes }: { hashes: Buffer[] }) => sql<CallerRow & { id: string; is_open: boolean }>`
  SELECT s.id, s.partner_id, s.mode, s.scopes, k.id AS key_id, k.ip_allowlist, p.name, p.suspended_at,
    least(${KEY_EXPIRES_IN_MS}, 1000 * extract(epoch from s.expires_at - now())::float8) AS expires_in_ms,
    s.ended_at IS NULL AND s.expires_at > now() AND ${keyIsUsable('k')} AS is_open
  FROM workbench_session s JOIN api_key k ON k.id = s.api_key_id JOIN partner p ON p.id = s.partner_id
  WHERE s.cookie_hash = ${anyOf(hashes)}`,
  { acrossTenants: 'key' },
);

import { type RawBuilder, sql } from 'kysely';
import { type AccountClock, accountTime } from '../domain/account-clock.ts';
import { ApiError } from '../domain/api-error.ts';
import { isId } from '../domain/ids.ts';
import { blocksOutside } from '../domain/ip-address.ts';
import type { Tenant } from '../domain/mode.ts';
import type { KeyRing } from '../platform/crypto/key-ring.ts';
import { SHOWN_KEY } from '../platform/db/columns.ts';
import { type Transactor, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { type AskingKey, authorOf, recordAudit } from '../requests/operator-context.ts';
import type { ApiKeyRequest, ApiKeyRow, RotateApiKeyRequest } from './api-key-resource.ts';
import { insertApiKey } from './api-keys.ts';
import { holdClock } from './clock.ts';
import { lockPartner } from './partners.ts';
import { Scope, withoutApiKeys } from './scope-rules.ts';

/** How many active keys an account can have in a mode (docs/partners/keys-and-modes.md). */
const MAX_ACTIVE = 50;
/** How many it can make in any 24 hours, so that a loop can't fill the table. */
const MAX_A_DAY = 1_000;

/** A key that asks, with what the request may do: in a workbench session, less than the key may. */
export interface NarrowedKey extends AskingKey {
  scopes: readonly Scope[];
}

interface MadeKey {
  row: ApiKeyRow;
  /** Shown once. */
  key: string;
}

/**
 * Makes a key for the account of the key that asks, in its mode. It is never wider than the asking key
 * (docs/partners/keys-and-modes.md).
 * @throws ApiError `insufficient_scope` if it would get a scope that the asking key lacks, `ip_not_allowed`
 *   if it could be used from elsewhere, `validation_failed` if it would have expired or would outlive the
 *   asking key, `limit_exceeded`, `rate_limited`;
 *   `invalid_api_key` and `account_suspended` if the asking key has meanwhile been revoked or suspended
 */
export function createOwnKey(
  { orm, ring }: CommandContext,
  asking: NarrowedKey,
  { name, scopes, ip_allowlist: ipAllowlist, expires_at: expiresAt }: ApiKeyRequest,
): Promise<MadeKey> {
  return transaction(orm, async (tx) => {
    const { clock, key: creator } = await lockForChange(tx, asking);
    const given = Scope.options.filter((scope) => (scopes ?? withoutApiKeys(asking.scopes)).includes(scope));
    mustHave(asking, given, 'give');
    const allowed = ipAllowlist === undefined ? creator.ip_allowlist : ipAllowlist;
    mustAllow(creator, allowed);
    const expires = chooseExpiry(creator, clock, expiresAt, creator.expires_at);
    const made = { name, scopes: given, ipAllowlist: allowed, expiresAt: expires };
    return make(tx, ring, { asking, clock, made, replaces: null });
  });
}

/**
 * Revokes a key of the account, which may be the one that asks; every process refuses it within 5 s. A key
 * that is revoked already does not change.
 * @throws ApiError `api_key_not_found`; see {@link createOwnKey} for the asking key
 */
export function revokeOwnKey(
  { orm }: Pick<CommandContext, 'orm'>,
  asking: AskingKey,
  id: string,
): Promise<void> {
  const { partnerId, mode } = asking;
  return transaction(orm, async (tx) => {
    await lockForChange(tx, asking);
    const { status, hint } = await lockOwn(tx, asking, id);
    if (status === 'revoked') return;
    await revoke(tx, { partnerId, mode, id });
    record(tx, asking, 'key.revoke', id, { hint });
  });
}

/**
 * Replaces a key: makes one like it, and lets the old one expire after the overlap, or when it would have.
 * @returns the new key
 * @throws ApiError `api_key_not_found`, `insufficient_scope` if the asking key lacks one of its scopes,
 *   `ip_not_allowed` if the key can be used from where the asking key can't, `validation_failed` if the new
 *   key would have expired or would outlive the asking key, `invalid_state` if it is not active,
 *   `limit_exceeded`, `rate_limited`; see {@link createOwnKey} for the asking key
 */
export function rotateOwnKey(
  { orm, ring }: CommandContext,
  asking: NarrowedKey,
  id: string,
  { overlap_seconds: overlapSeconds, expires_at: expiresAt }: RotateApiKeyRequest,
): Promise<MadeKey> {
  const { partnerId, mode } = asking;
  return transaction(orm, async (tx) => {
    const { clock, key: asker } = await lockForChange(tx, asking);
    const old = await lockOwn(tx, asking, id);
    mustHave(asking, old.scopes as Scope[], 'rotate a key with');
    if (old.status !== 'active')
      throw new ApiError('invalid_state', {
        message: `This API key is ${old.status}, and only an active key can be rotated. Make a new one with POST /api-keys.`,
      });
    const { name, ip_allowlist: ipAllowlist } = old;
    mustAllow(asker, ipAllowlist);
    const expires = chooseExpiry(asker, clock, expiresAt, old.expires_at);
    await expireOwn(tx, { partnerId, mode, id, overlapSeconds });
    const made = { name, scopes: old.scopes as Scope[], ipAllowlist, expiresAt: expires };
    return make(tx, ring, { asking, clock, made, replaces: { id, overlapSeconds } });
  });
}

interface Making {
  asking: AskingKey;
  clock: AccountClock;
  made: { name: string | null; scopes: Scope[]; ipAllowlist: string[] | null; expiresAt: Date | null };
  /** The key that it takes the place of. */
  replaces: { id: string; overlapSeconds: number } | null;
}

async function make(
  tx: Transactor,
  ring: KeyRing,
  { asking, clock, made, replaces }: Making,
): Promise<MadeKey> {
  const { partnerId, mode, keyId: createdBy } = asking;
  await mustHaveRoom(tx, asking);
  const { id, key, hint } = await insertApiKey(tx, ring, { ...made, partnerId, mode, createdBy, clock });
  if (replaces !== null) {
    const { overlapSeconds } = replaces;
    record(tx, asking, 'key.rotate', replaces.id, { replacedBy: id, overlapSeconds });
  }
  record(tx, asking, 'key.create', id, { ...made, hint, ...(replaces && { replaces: replaces.id }) });
  return { row: await lockOwn(tx, asking, id), key };
}

/**
 * Locks the account against other changes of its keys, then the key that asks. Whoever revokes a key can rely
 * on it: what it asked for before has happened by then, and it gets nothing more.
 */
export async function lockForChange(
  tx: Transactor,
  { partnerId, mode, keyId }: AskingKey,
): Promise<{ clock: AccountClock; key: ApiKeyRow }> {
  const clock = await holdClock(tx, { partnerId, mode });
  const partner = await lockPartner(tx, partnerId);
  const [key] = await lockKey(tx, { partnerId, mode, id: keyId });
  if (key?.status !== 'active') throw new ApiError('invalid_api_key');
  if (partner.suspendedAt) throw new ApiError('account_suspended');
  return { clock, key };
}

async function lockOwn(tx: Transactor, { partnerId, mode }: Tenant, id: string): Promise<ApiKeyRow> {
  const [key] = isId('key', id) ? await lockKey(tx, { partnerId, mode, id }) : [];
  if (key === undefined) throw new ApiError('api_key_not_found');
  return key;
}

const lockKey = writeStatement(
  (_, { partnerId, mode, id }: Tenant & { id: string }) => sql<ApiKeyRow>`
  SELECT ${SHOWN_KEY} FROM api_key k WHERE k.id = ${id} AND k.partner_id = ${partnerId}
    AND k.mode = ${mode} FOR NO KEY UPDATE`,
);

/** @throws ApiError `insufficient_scope` */
export function mustHave({ scopes }: NarrowedKey, wanted: readonly Scope[], what: string): void {
  const lacking = wanted.filter((scope) => !scopes.includes(scope));
  if (lacking.length === 0) return;
  throw new ApiError('insufficient_scope', {
    message: `This API key can't ${what} a scope that it does not have: ${lacking.join(', ')}. The request did nothing.`,
  });
}

function mustAllow({ ip_allowlist: own }: ApiKeyRow, blocks: readonly string[] | null): void {
  const outside = blocksOutside(blocks, own);
  if (outside.length === 0) return;
  throw new ApiError('ip_not_allowed', {
    message: `This API key can't make a key that can be used from where it can't be used itself: ${outside.join(', ')}. The request did nothing.`,
  });
}

/** @param otherwise the expiry of the new key if none is asked for */
function chooseExpiry(
  { expires_at: own }: ApiKeyRow,
  clock: AccountClock,
  asked: Date | null | undefined,
  otherwise: string | null,
): Date | null {
  const chosen = asked ?? (asked === null || otherwise === null ? null : new Date(otherwise));
  if (chosen !== null && chosen <= accountTime(clock))
    throw ApiError.ofField('expires_at', 'expires_at must be in the future');
  if (own === null || (chosen !== null && chosen <= new Date(own))) return chosen;
  throw ApiError.ofField(
    'expires_at',
    `expires_at must be at most ${new Date(own).toISOString()}, when the API key of this request expires`,
  );
}

async function mustHaveRoom(tx: Transactor, { partnerId, mode }: Tenant): Promise<void> {
  const [row] = await countKeys(tx, { partnerId, mode, maxADay: MAX_A_DAY });
  if (row === undefined) throw new Error('a count has one row');
  if (row.made >= MAX_A_DAY) {
    throw new ApiError('rate_limited', {
      message: `This account has made ${MAX_A_DAY} API keys in this mode within 24 hours, and can't make more for now. Retry after the number of seconds in Retry-After.`,
      retryAfterSeconds: 3_600,
    });
  }
  if (row.active < MAX_ACTIVE) return;
  throw new ApiError('limit_exceeded', {
    message: `This account has ${MAX_ACTIVE} active API keys in this mode, and can't have more. Revoke one first: DELETE /api-keys/{keyId}.`,
  });
}

const countOf = (
  partnerId: unknown,
  mode: unknown,
  which: RawBuilder<unknown>,
) => sql`(SELECT count(*) FROM api_key
  WHERE partner_id = ${partnerId} AND mode = ${mode} AND revoked_at IS NULL AND ${which})`;

// Two ranges of one index, so that however many have expired, they are not read. An id has the real time.
const countKeys = writeStatement(
  (_, { partnerId, mode, maxADay }: Tenant & { maxADay: number }) => sql<{ active: number; made: number }>`
  SELECT (${countOf(partnerId, mode, sql`expires_at IS NULL`)}
    + ${countOf(partnerId, mode, sql`expires_at > account_now(${partnerId}, ${mode})`)})::int AS active,
    count(*)::int AS made
  FROM (
    SELECT FROM api_key
    WHERE partner_id = ${partnerId} AND mode = ${mode}
      AND id > 'key_' || id_time(now() - interval '1 day') COLLATE "C"
    ORDER BY id DESC LIMIT ${maxADay}) day`,
);

const revoke = writeStatement(
  (_, { partnerId, mode, id }: Tenant & { id: string }) => sql`
  UPDATE api_key SET revoked_at = account_now(partner_id, mode)
  WHERE id = ${id} AND partner_id = ${partnerId} AND mode = ${mode}`,
);

const expireOwn = writeStatement(
  (_, { partnerId, mode, id, overlapSeconds }: Tenant & { id: string; overlapSeconds: number }) => sql`
  UPDATE api_key SET expires_at = least(expires_at, account_now(partner_id, mode) + ${overlapSeconds} * interval '1 second')
  WHERE id = ${id} AND partner_id = ${partnerId} AND mode = ${mode}`,
);

export function record(
  tx: Transactor,
  asking: AskingKey,
  action: string,
  subject: string,
  detail: object,
): void {
  const { partnerId, mode } = asking;
  const { actor, request } = authorOf(asking);
  recordAudit(tx, { actor, action, subject, detail: { partnerId, mode, ...detail, ...request } });
}

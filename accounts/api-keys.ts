import { type RawBuilder, sql } from 'kysely';
import { type AccountClock, accountTime } from '../domain/account-clock.ts';
import type { Mode, Tenant } from '../domain/mode.ts';
import { Refusal, unknownId } from '../domain/refusal.ts';
import { apiKeyHasher, apiKeyHint, apiKeyPrefix, generateApiKey } from '../platform/crypto/api-key.ts';
import type { KeyRing } from '../platform/crypto/key-ring.ts';
import { newId, readIdTime } from '../platform/crypto/new-id.ts';
import { type Transactor, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import { type Operator, type OperatorContext, recordAudit } from '../requests/operator-context.ts';
import { holdClock } from './clock.ts';
import { lockPartner } from './partners.ts';
import { DEFAULT_SCOPES, type Scope } from './scope-rules.ts';
import { ApiKeyEntity } from './tables.ts';

/**
 * For a `sql` template: whether a key is neither revoked nor expired. Expiry is in the account's time. In this
 * order, a key without one costs no look at the clock.
 */
export const keyIsUsable = (key: string): RawBuilder<boolean> =>
  sql<boolean>`${sql.ref(`${key}.revoked_at`)} IS NULL AND CASE WHEN ${sql.ref(`${key}.expires_at`)} IS NULL THEN true
  ELSE ${sql.ref(`${key}.expires_at`)} > account_now(${sql.ref(`${key}.partner_id`)}, ${sql.ref(`${key}.mode`)}) END`;

interface NewApiKey {
  partnerId: string;
  mode: Mode;
  name: string | null;
  /** If omitted, all but managing keys. */
  scopes?: readonly Scope[];
  /** As domain/ip-address.ts spells it. If omitted, the key can be used from everywhere. */
  ipAllowlist?: readonly string[] | null;
  /** In the account's time. If omitted, never. */
  expiresAt?: Date | null;
}

/**
 * Creates an API key. Only its keyed hash is stored, so the key can't be read again.
 * @throws Refusal if there is no such account, or the key would have expired
 */
export function createApiKey(
  { orm, ring, actor }: OperatorContext,
  { partnerId, mode, name, scopes = DEFAULT_SCOPES, ipAllowlist = null, expiresAt = null }: NewApiKey,
): Promise<{ id: string; key: string }> {
  return transaction(orm, async (tx) => {
    const clock = await holdClock(tx, { partnerId, mode });
    await lockPartner(tx, partnerId);
    const now = accountTime(clock);
    if (expiresAt !== null && expiresAt <= now)
      throw new Refusal(`--expires-at must be in the future: for this account it is ${now.toISOString()}.`);
    const made = { partnerId, mode, name, scopes, ipAllowlist, expiresAt, createdBy: 'operator', clock };
    const { id, key, hint } = await insertApiKey(tx, ring, made);
    const detail = { partnerId, mode, name, hint, scopes, ipAllowlist, expiresAt };
    recordAudit(tx, { actor, action: 'key.create', subject: id, detail });
    return { id, key };
  });
}

interface MadeKey extends Required<NewApiKey> {
  createdBy: string;
  clock: AccountClock;
}

/** Makes a key and writes its row. @returns the key with its id and hint */
export async function insertApiKey(
  tx: Transactor,
  ring: KeyRing,
  { clock, expiresAt, ipAllowlist, scopes, ...made }: MadeKey,
): Promise<{ id: string; key: string; hint: string }> {
  const key = generateApiKey(made.mode);
  const [hash] = apiKeyHasher(ring)(key);
  if (hash === undefined) throw new Error('a key ring is never empty');
  const id = newId('key');
  const hint = apiKeyHint(key);
  await insertKey(tx, {
    ...made,
    id,
    hash,
    hint,
    prefix: apiKeyPrefix(key),
    scopes: [...scopes],
    ipAllowlist: ipAllowlist === null ? null : [...ipAllowlist],
    expiresAt: expiresAt?.toISOString() ?? null,
    createdAt: accountTime(clock, readIdTime(id)).toISOString(),
  });
  return { id, key, hint };
}

interface KeyValues extends Tenant {
  id: string;
  name: string | null;
  hash: Buffer;
  hint: string;
  prefix: string;
  scopes: string[];
  ipAllowlist: string[] | null;
  expiresAt: string | null;
  createdBy: string;
  createdAt: string;
}

const insertKey = writeStatement(
  (_, key: KeyValues) => sql`
    INSERT INTO api_key (id, partner_id, mode, name, hash, hint, prefix, scopes, ip_allowlist, expires_at,
      created_by, created_at)
    VALUES (${key.id}, ${key.partnerId}, ${key.mode}, ${key.name}, ${key.hash}, ${key.hint},
      ${key.prefix}, ${key.scopes},
      ${key.ipAllowlist}, ${key.expiresAt}, ${key.createdBy}, ${key.createdAt})`,
);

/**
 * Revokes an API key permanently; every process refuses it within 5 s (docs/partners/keys-and-modes.md). A
 * key that is already revoked does not change.
 * @throws Refusal if there is no such key.
 */
export function revokeApiKey({ orm, actor }: Operator, keyId: string): Promise<void> {
  return transaction(orm, async (tx) => {
    await lockKey(tx, { keyId });
    const key = await tx.findOne(ApiKeyEntity, keyId);
    if (key === null) throw unknownId('key', keyId, 'run "operator key list PARTNER"');
    if (key.revokedAt) return;
    key.revokedAt = new Date();
    const { partnerId, mode, hint } = key;
    recordAudit(tx, { actor, action: 'key.revoke', subject: keyId, detail: { partnerId, mode, hint } });
  });
}

const lockKey = writeStatement(
  (db, { keyId }: { keyId: string }) =>
    db.selectFrom('api_key').select('id').where('id', '=', keyId).forNoKeyUpdate(),
  { acrossTenants: 'operator' },
);

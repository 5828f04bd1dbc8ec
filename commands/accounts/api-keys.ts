import { apiKeyHasher, apiKeyHint, apiKeyPrefix, generateApiKey } from '../../crypto/api-key.ts';
import { newId } from '../../crypto/new-id.ts';
import { ApiKeyEntity } from '../../db/entities/accounts.ts';
import { writeStatement } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import type { Mode } from '../../domain/mode.ts';
import { DEFAULT_SCOPES, type Scope } from '../../domain/scope.ts';
import { unknownId } from '../refusal.ts';
import { type Operator, type OperatorContext, recordAudit } from './operator-context.ts';
import { lockPartner } from './partners.ts';

interface NewApiKey {
  partnerId: string;
  mode: Mode;
  name: string | null;
  /** If omitted, all but managing keys. */
  scopes?: readonly Scope[];
}

/**
 * Creates an API key. Only its keyed hash is stored, so the key can't be read again.
 * @throws Refusal if there is no such account.
 */
export function createApiKey(
  { orm, ring, actor }: OperatorContext,
  { partnerId, mode, name, scopes = DEFAULT_SCOPES }: NewApiKey,
): Promise<{ id: string; key: string }> {
  return transaction(orm, async (tx) => {
    await lockPartner(tx, partnerId);
    const key = generateApiKey(mode);
    const [hash] = apiKeyHasher(ring)(key);
    if (hash === undefined) throw new Error('a key ring is never empty');
    const id = newId('key');
    const hint = apiKeyHint(key);
    const created = { id, partnerId, mode, name, hash, hint, prefix: apiKeyPrefix(key), scopes: [...scopes] };
    tx.create(ApiKeyEntity, { ...created, createdAt: new Date() });
    recordAudit(tx, {
      actor,
      action: 'key.create',
      subject: id,
      detail: { partnerId, mode, name, hint, scopes },
    });
    return { id, key };
  });
}

/**
 * Revokes an API key permanently; every process refuses it within 5 s (docs/partners/keys-and-modes.md). A key that is
 * already revoked does not change.
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

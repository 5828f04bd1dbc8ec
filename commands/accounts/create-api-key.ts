import { apiKeyHint, generateApiKey } from '../../crypto/api-key.ts';
import { apiKeyHasher } from '../../crypto/derived-keys.ts';
import { newId } from '../../crypto/new-id.ts';
import { ApiKeyEntity } from '../../db/entities/accounts.ts';
import { transaction } from '../../db/transaction.ts';
import type { Mode } from '../../domain/mode.ts';
import { lockPartner } from './lock-partner.ts';
import { type OperatorContext, recordAudit } from './operator-context.ts';

export interface NewApiKey {
  partnerId: string;
  mode: Mode;
  name: string | null;
}

/**
 * Makes an API key. This is the only time it can be read: what is kept is its keyed hash.
 * @throws Refusal where there is no such account.
 */
export function createApiKey(
  { orm, ring, actor }: OperatorContext,
  { partnerId, mode, name }: NewApiKey,
): Promise<{ id: string; key: string }> {
  return transaction(orm, async (tx) => {
    await lockPartner(tx, partnerId);
    const key = generateApiKey(mode);
    const [hash] = apiKeyHasher(ring)(key);
    if (hash === undefined) throw new Error('a key ring is never empty');
    const id = newId('key');
    const hint = apiKeyHint(key);
    tx.create(ApiKeyEntity, { id, partnerId, mode, name, hash, hint, createdAt: new Date() });
    recordAudit(tx, actor, 'key.create', id, { partnerId, mode, name, hint });
    return { id, key };
  });
}

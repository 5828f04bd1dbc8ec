import { ApiKeyEntity } from '../../db/entities/accounts.ts';
import { readStatement } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import { unknownId } from '../idempotency/refusal.ts';
import { type Operator, recordAudit } from './operator-context.ts';

/**
 * Revokes an API key for good, in effect within 5 s in every process (decisions.md, "Keys"). One that is revoked
 * already stays as it is.
 * @throws Refusal where there is none.
 */
export function revokeApiKey({ orm, actor }: Operator, keyId: string): Promise<void> {
  return transaction(orm, async (tx) => {
    await lock(tx, { keyId });
    const key = await tx.findOne(ApiKeyEntity, keyId);
    if (key === null) throw unknownId('key', keyId, 'run "operator key list PARTNER"');
    if (key.revokedAt) return;
    key.revokedAt = new Date();
    const { partnerId, mode, hint } = key;
    recordAudit(tx, actor, 'key.revoke', keyId, { partnerId, mode, hint });
  });
}

const lock = readStatement((db, { keyId }: { keyId: string }) =>
  db.selectFrom('api_key').select('id').where('id', '=', keyId).forNoKeyUpdate(),
);

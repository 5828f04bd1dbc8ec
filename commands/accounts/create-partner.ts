import { newId } from '../../crypto/new-id.ts';
import { AccountUsageEntity, PartnerEntity } from '../../db/entities/accounts.ts';
import { transaction } from '../../db/transaction.ts';
import { type Operator, recordAudit } from './operator-context.ts';

export interface NewPartner {
  name: string;
  secureDetailsEnabled: boolean;
}

/** Makes an account with the platform's fees and limits, ready in both modes. Its keys are made apart. */
export function createPartner(
  { orm, actor }: Operator,
  { name, secureDetailsEnabled }: NewPartner,
): Promise<{ id: string; name: string }> {
  return transaction(orm, async (tx) => {
    const id = newId('prt');
    tx.create(PartnerEntity, { id, name, secureDetailsEnabled, createdAt: new Date() });
    await tx.flush();
    tx.create(AccountUsageEntity, { partnerId: id, mode: 'test' });
    tx.create(AccountUsageEntity, { partnerId: id, mode: 'live' });
    recordAudit(tx, actor, 'partner.create', id, { name, secureDetailsEnabled });
    return { id, name };
  });
}

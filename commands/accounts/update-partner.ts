import { transaction } from '../../db/transaction.ts';
import { lockPartner } from './lock-partner.ts';
import { type Operator, recordAudit } from './operator-context.ts';

export interface PartnerChanges {
  name?: string;
  secureDetailsEnabled?: boolean;
}

/** Changes what is given of an account. @throws Refusal where there is none. */
export function updatePartner(
  { orm, actor }: Operator,
  partnerId: string,
  changes: PartnerChanges,
): Promise<void> {
  return transaction(orm, async (tx) => {
    const partner = await lockPartner(tx, partnerId);
    const { name, secureDetailsEnabled } = partner;
    const after = { name, secureDetailsEnabled, ...changes };
    tx.assign(partner, after);
    recordAudit(tx, actor, 'partner.update', partnerId, { before: { name, secureDetailsEnabled }, after });
  });
}

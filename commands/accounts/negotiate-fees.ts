import { transaction } from '../../db/transaction.ts';
import { DEFAULT_FEE_PLAN, FeePlan } from '../../domain/fees.ts';
import { lockPartner } from './lock-partner.ts';
import { type Operator, recordAudit } from './operator-context.ts';

/**
 * Gives an account a fee plan of its own: the one it has now, negotiated or the platform's, with `changes`. From the
 * next quote on; what is held already keeps its fees.
 * @throws Refusal where there is no such account.
 */
export function negotiateFees(
  { orm, actor }: Operator,
  partnerId: string,
  changes: Partial<FeePlan>,
): Promise<void> {
  return transaction(orm, async (tx) => {
    const partner = await lockPartner(tx, partnerId);
    const before = partner.feePlan ?? DEFAULT_FEE_PLAN;
    const after = FeePlan.parse({ ...before, ...changes });
    recordAudit(tx, actor, 'partner.fees', partnerId, { before, after });
    partner.feePlan = after;
  });
}

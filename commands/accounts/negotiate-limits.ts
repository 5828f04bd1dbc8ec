import { transaction } from '../../db/transaction.ts';
import { AccountLimits, DEFAULT_LIMITS } from '../../domain/limits.ts';
import { Refusal } from '../idempotency/refusal.ts';
import { lockPartner } from './lock-partner.ts';
import { type Operator, recordAudit } from './operator-context.ts';

/**
 * Gives an account limits of its own, in both modes: those it has now, negotiated or the platform's, with `changes`.
 * @throws Refusal where there is no such account, or the smallest card would be larger than the largest.
 */
export function negotiateLimits(
  { orm, actor }: Operator,
  partnerId: string,
  changes: Partial<AccountLimits>,
): Promise<void> {
  return transaction(orm, async (tx) => {
    const partner = await lockPartner(tx, partnerId);
    const before = partner.limits ?? DEFAULT_LIMITS;
    const after = AccountLimits.parse({ ...before, ...changes });
    if (after.minCardCents > after.maxCardCents) {
      throw new Refusal(
        `The smallest card (${after.minCardCents}) would be larger than the largest (${after.maxCardCents}): ` +
          'give --min-card and --max-card together.',
      );
    }
    recordAudit(tx, actor, 'partner.limits', partnerId, { before, after });
    partner.limits = after;
  });
}

import type { EntityManager } from '@mikro-orm/postgresql';
import { siblingId } from '../../domain/ids.ts';
import type { CardRow } from '../../resources/card.ts';
import type { TopUpRow } from '../../resources/topup.ts';
import { lockCard } from '../card-status/lock-card.ts';
import type { LockedClaim } from '../idempotency/lock-claim.ts';
import { lockTopUp } from './lock-top-up.ts';

export interface PendingTopUpRows {
  topUp: TopUpRow;
  card: CardRow;
}

/** A claim's top-up with its card, both locked, in their order; null where it is not pending (any more). */
export async function lockPendingTopUp(
  tx: EntityManager,
  claimId: string,
  claim: LockedClaim | null,
): Promise<PendingTopUpRows | null> {
  const card = claim?.cardId ? await lockCard(tx, claim.cardId) : undefined;
  if (card === undefined) return null;
  const topUp = await lockTopUp(tx, siblingId('topup', claimId));
  return topUp?.status === 'pending' ? { topUp, card } : null;
}

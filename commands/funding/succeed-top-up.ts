import type { EntityManager } from '@mikro-orm/postgresql';
import type { KeyRing } from '../../crypto/key-ring.ts';
import { transaction } from '../../db/transaction.ts';
import { applyOperation } from '../../ledger/apply-operation.ts';
import { readCardBalance } from '../../ledger/balances.ts';
import type { CommandContext } from '../command-context.ts';
import { lockClaim } from '../idempotency/lock-claim.ts';
import { finishTopUp } from './finish-top-up.ts';
import { lockPendingTopUp, type PendingTopUpRows } from './lock-pending-top-up.ts';
import { topUpOperation } from './top-up-operation.ts';
import { withLoaded } from './with-loaded.ts';

/**
 * The network loaded the card: posts the hold, ends the top-up, writes `topup.succeeded`, and answers the claim with 201
 * if it has no answer yet. A top-up that isn't pending any more is left as it is: the card was blocked meanwhile.
 */
export async function succeedTopUp({ orm, ring }: CommandContext, claimId: string): Promise<void> {
  await transaction(orm, async (tx) => {
    const pending = await lockPendingTopUp(tx, claimId, await lockClaim(tx, claimId));
    if (pending === null) return;
    await postTopUp(tx, ring, pending);
  });
}

/** {@link succeedTopUp} in the caller's transaction, which holds the claim and the pending top-up. */
export async function postTopUp(
  tx: EntityManager,
  ring: KeyRing,
  { topUp, card }: PendingTopUpRows,
): Promise<void> {
  await applyOperation(tx, topUpOperation(topUp, 'post'));
  await finishTopUp(tx, ring, withLoaded(topUp, await readCardBalance(tx, card.id)), card);
}

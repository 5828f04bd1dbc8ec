import type { EntityManager } from '@mikro-orm/postgresql';
import type { KeyRing } from '../../crypto/key-ring.ts';
import { transaction } from '../../db/transaction.ts';
import { ApiError } from '../../domain/api-error.ts';
import type { TopUpFailureCode } from '../../domain/topup.ts';
import { applyOperation } from '../../ledger/apply-operation.ts';
import { readCardBalance } from '../../ledger/balances.ts';
import type { CommandContext } from '../command-context.ts';
import { type LockedClaim, lockUsageAndClaim } from '../idempotency/lock-claim.ts';
import { lockPendingTopUp, type PendingTopUpRows } from './lock-pending-top-up.ts';
import { refuseTopUp } from './refuse-top-up.ts';
import { topUpOperation } from './top-up-operation.ts';

/**
 * A definite no: releases every held cent. Before the claim has an answer the refusal is the answer, 402
 * `provider_declined`, and no top-up is left behind; after a 202 the top-up is `failed` and `topup.failed` says so. A
 * top-up that isn't pending any more is left as it is.
 */
export async function failTopUp(
  { orm, ring }: CommandContext,
  claimId: string,
  failure: TopUpFailureCode,
): Promise<void> {
  await transaction(orm, async (tx) => {
    const claim = await lockUsageAndClaim(tx, claimId);
    const pending = await lockPendingTopUp(tx, claimId, claim);
    if (claim === null || pending === null) return;
    await voidTopUp(tx, ring, claim, pending, failure);
  });
}

/** {@link failTopUp} in the caller's transaction, which holds the account's usage, the claim and the pending top-up. */
export async function voidTopUp(
  tx: EntityManager,
  ring: KeyRing,
  { answered }: LockedClaim,
  { topUp, card }: PendingTopUpRows,
  failure: TopUpFailureCode,
): Promise<void> {
  await applyOperation(tx, topUpOperation(topUp, 'void'));
  const cardBalanceCents = await readCardBalance(tx, card.id);
  const refusal = new ApiError('provider_declined');
  await refuseTopUp(tx, ring, { topUp, card, cardBalanceCents, failure, refusal, answered });
}

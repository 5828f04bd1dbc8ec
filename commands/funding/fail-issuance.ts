import type { EntityManager } from '@mikro-orm/postgresql';
import type { KeyRing } from '../../crypto/key-ring.ts';
import { query } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import { ApiError } from '../../domain/api-error.ts';
import type { CardFailureCode } from '../../domain/card.ts';
import { siblingId } from '../../domain/ids.ts';
import { applyOperation } from '../../ledger/apply-operation.ts';
import type { CardRow } from '../../resources/card.ts';
import { lockCard } from '../card-status/lock-card.ts';
import type { CommandContext } from '../command-context.ts';
import { refuseClaim } from '../idempotency/answer-claim.ts';
import { type LockedClaim, lockUsageAndClaim } from '../idempotency/lock-claim.ts';
import { uncountFunding } from './account-usage.ts';
import { finishCard } from './finish-card.ts';
import { issuanceOperation } from './issuance-operation.ts';

/**
 * A definite no: releases every held cent and the external_ref. Before the claim has an answer the refusal is the
 * answer, 402 `provider_declined`, and no card is left behind; after a 202 the card is `failed` and `card.issue_failed`
 * says so (decisions.md, "Resources"). A card that isn't pending any more is left as it is.
 */
export async function failIssuance(
  context: CommandContext,
  claimId: string,
  failure: CardFailureCode,
): Promise<void> {
  const { orm, ring } = context;
  await transaction(orm, async (tx) => {
    const claim = await lockUsageAndClaim(tx, claimId);
    const card = await lockCard(tx, siblingId('card', claimId));
    if (claim === null || card?.status !== 'funding_pending') return;
    await voidIssuance(tx, ring, claim, card, failure);
  });
}

/** {@link failIssuance} in the caller's transaction, which holds the account's usage, the claim and the pending card. */
export async function voidIssuance(
  tx: EntityManager,
  ring: KeyRing,
  claim: LockedClaim,
  card: CardRow,
  failure: CardFailureCode,
): Promise<void> {
  const claimId = siblingId('claim', card.id);
  await uncountFunding(tx, card, card.funding_cents, 1);
  const operation = issuanceOperation(card, 'void');
  if (claim.answered) {
    await finishCard(tx, ring, claimId, { ...card, status: 'failed', failure_code: failure }, operation);
  } else {
    await applyOperation(tx, operation);
    await query(tx, 'DELETE FROM card WHERE id = $1', [card.id]);
    await refuseClaim(tx, ring, claimId, new ApiError('provider_declined'));
  }
}

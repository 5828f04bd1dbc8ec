import type { EntityManager } from '@mikro-orm/postgresql';
import { query } from '../db/sql.ts';
import { transaction } from '../db/transaction.ts';
import { ApiError } from '../domain/api-error.ts';
import type { CardRow } from '../domain/card-resource.ts';
import { siblingId } from '../domain/ids.ts';
import { applyOperation } from '../ledger/apply-operation.ts';
import { refuseClaim } from './answer-claim.ts';
import type { CommandContext } from './command-context.ts';
import { finishCard } from './finish-card.ts';
import { issuanceOperation } from './issuance-operation.ts';
import { lockCard } from './lock-card.ts';

/** Why an issuance failed, as the card's `failure_code` says it. */
export type IssuanceFailure = 'provider_declined' | 'issuance_failed' | 'operator_failed';

/**
 * A definite no: releases every held cent and the external_ref. Before the claim has an answer the refusal is the
 * answer, 402 `provider_declined`, and no card is left behind; after a 202 the card is `failed` and `card.issue_failed`
 * says so (decisions.md, "Resources"). A card that isn't pending any more is left as it is.
 */
export async function failIssuance(
  context: CommandContext,
  claimId: string,
  failure: IssuanceFailure,
): Promise<void> {
  const { orm, ring } = context;
  await transaction(orm, async (tx) => {
    const card = await lockCard(tx, siblingId('card', claimId));
    if (card?.status !== 'funding_pending') return;
    await uncount(tx, card);
    await applyOperation(tx, issuanceOperation(card, 'void'));
    const [unanswered] = await query(
      tx,
      'SELECT FROM idempotency_claim WHERE id = $1 AND response_status IS NULL FOR NO KEY UPDATE',
      [claimId],
    );
    if (unanswered === undefined) {
      await finishCard(tx, ring, claimId, { ...card, status: 'failed', failure_code: failure });
    } else {
      await query(tx, 'DELETE FROM card WHERE id = $1', [card.id]);
      await refuseClaim(tx, ring, claimId, new ApiError('provider_declined'));
    }
  });
}

/** What failed doesn't count: neither as an open card nor, on the day it was counted, as cents loaded. */
async function uncount(tx: EntityManager, card: CardRow): Promise<void> {
  await query(
    tx,
    `UPDATE account_usage SET open_cards = open_cards - 1,
       loaded_cents = loaded_cents - CASE
         WHEN loaded_on = ($3::timestamptz AT TIME ZONE 'UTC')::date THEN $4::bigint ELSE 0 END
     WHERE partner_id = $1 AND mode = $2`,
    [card.partner_id, card.mode, card.created_at, card.funding_cents],
  );
}

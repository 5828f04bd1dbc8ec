import type { EntityManager } from '@mikro-orm/postgresql';
import type { KeyRing } from '../../crypto/key-ring.ts';
import { query } from '../../db/sql.ts';
import type { ApiError } from '../../domain/api-error.ts';
import { siblingId } from '../../domain/ids.ts';
import type { TopUpFailureCode } from '../../domain/topup.ts';
import type { CardRow } from '../../resources/card.ts';
import type { TopUpRow } from '../../resources/topup.ts';
import { refuseClaim } from '../idempotency/answer-claim.ts';
import { uncountFunding } from './account-usage.ts';
import { finishTopUp } from './finish-top-up.ts';

/** A pending top-up that comes to nothing. */
export interface RefusedTopUp {
  topUp: TopUpRow;
  /** As it is from now on. */
  card: CardRow;
  cardBalanceCents: number;
  failure: TopUpFailureCode;
  /** What answers the claim where it has no answer yet. */
  refusal: ApiError;
  answered: boolean;
}

/**
 * What follows from a no once the hold is released, in the caller's transaction: it is uncounted, and then it is either
 * a refusal in the same call, which leaves no top-up behind, or, after a 202, a `failed` top-up and `topup.failed`
 * (decisions.md, "Resources").
 */
export async function refuseTopUp(tx: EntityManager, ring: KeyRing, refused: RefusedTopUp): Promise<void> {
  const { topUp, card, cardBalanceCents, failure, refusal, answered } = refused;
  await uncountFunding(tx, topUp, topUp.amount_cents, 0);
  if (answered) {
    const ended = {
      ...({ status: 'failed', failure_code: failure } as const),
      ...{ card_balance_cents: String(cardBalanceCents), completed_at: new Date().toISOString() },
    };
    await finishTopUp(tx, ring, { ...topUp, ...ended }, card);
  } else {
    await query(tx, 'DELETE FROM topup WHERE id = $1', [topUp.id]);
    await refuseClaim(tx, ring, siblingId('claim', topUp.id), refusal);
  }
}

import type { EntityManager } from '@mikro-orm/postgresql';
import { transaction } from '../db/transaction.ts';
import { ApiError } from '../domain/api-error.ts';
import { siblingId } from '../domain/ids.ts';
import { applyOperation } from '../ledger/apply-operation.ts';
import { withIssued } from './activate-card.ts';
import { refuseClaim } from './answer-claim.ts';
import type { IssuanceContext } from './command-context.ts';
import { finishCard } from './finish-card.ts';
import { holdCardFunding } from './hold-card-funding.ts';
import { issuanceOperation } from './issuance-operation.ts';
import { lockIssuanceTerms } from './issuance-terms.ts';

/** `held`: the network decides next. `answered`: the issuance is over and its claim has the answer. */
export type Opening = 'held' | 'answered';

/**
 * The first step of an issuance. Live mode: the pending card and its hold. Test mode, whose network is a function of
 * ours that always says yes: hold, post, active card, event and answer in the same transaction. A refusal becomes the
 * claim's answer and leaves nothing else behind. Run again for the same claim it changes nothing and says the same.
 */
export async function openIssuance(context: IssuanceContext, claimId: string): Promise<Opening> {
  try {
    return await transaction(context.orm, (tx) => open(tx, context, claimId));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    await transaction(context.orm, (tx) => refuseClaim(tx, context.ring, claimId, error));
    return 'answered';
  }
}

async function open(tx: EntityManager, context: IssuanceContext, claimId: string): Promise<Opening> {
  const cardId = siblingId('card', claimId);
  const terms = await lockIssuanceTerms(tx, context, claimId, cardId);
  if (terms.cardStatus !== null) return terms.cardStatus === 'funding_pending' ? 'held' : 'answered';
  if (terms.answered) return 'answered';

  const card = await holdCardFunding(tx, cardId, terms);
  if (card.mode === 'live') return 'held';

  await applyOperation(tx, issuanceOperation(card, 'post'));
  await finishCard(tx, context.ring, claimId, withIssued(card, await context.issueTestCard(cardId)));
  return 'answered';
}

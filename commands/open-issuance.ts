import type { EntityManager } from '@mikro-orm/postgresql';
import { transaction } from '../db/transaction.ts';
import { ApiError } from '../domain/api-error.ts';
import { siblingId } from '../domain/ids.ts';
import { applyOperation } from '../ledger/apply-operation.ts';
import { announcementOf } from './announcement.ts';
import { refuseClaim } from './answer-claim.ts';
import type { IssuanceContext } from './command-context.ts';
import { draftCard } from './draft-card.ts';
import { INSERT_CARD_PARAMETERS, insertCard } from './insert-card.ts';
import { issuanceOperation } from './issuance-operation.ts';
import { lockIssuance, lockIssuanceTerms } from './issuance-terms.ts';
import { lockCard } from './lock-card.ts';
import { withIssued } from './with-issued.ts';

/** `held`: the network decides next. `answered`: the issuance is over and its claim has the answer. */
export type Opening = 'held' | 'answered';

/**
 * The first step of an issuance. Live mode: the pending card and its hold. Test mode, whose network is a function of
 * ours that always says yes, needs no hold: active card, money, event and answer are this one transaction. A refusal
 * becomes the claim's answer and leaves nothing else behind. Run again for the same claim it changes nothing and says
 * the same.
 */
export async function openIssuance(context: IssuanceContext, claimId: string): Promise<Opening> {
  try {
    return await transaction(context.orm, (tx) => open(tx, context, claimId));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return await transaction(context.orm, (tx) => refuse(tx, context, claimId, error));
  }
}

/** Unless another run of the same claim got further meanwhile: then what that did stands. */
async function refuse(
  tx: EntityManager,
  { ring }: IssuanceContext,
  claimId: string,
  error: ApiError,
): Promise<Opening> {
  if (!(await lockIssuance(tx, claimId))) return 'answered';
  const card = await lockCard(tx, siblingId('card', claimId));
  if (card === undefined) await refuseClaim(tx, ring, claimId, error);
  return card?.status === 'funding_pending' ? 'held' : 'answered';
}

async function open(tx: EntityManager, context: IssuanceContext, claimId: string): Promise<Opening> {
  const cardId = siblingId('card', claimId);
  const terms = await lockIssuanceTerms(tx, context, claimId, cardId);
  if (terms === null) return 'answered';
  if (terms.cardStatus !== null) return terms.cardStatus === 'funding_pending' ? 'held' : 'answered';
  if (terms.answered) return 'answered';

  const draft = draftCard(cardId, terms);
  if (terms.mode === 'live') {
    await insertCard(tx, draft);
  } else {
    const card = withIssued(draft, await context.issueTestCard(cardId));
    await insertCard(tx, card, announcementOf(context.ring, claimId, card, INSERT_CARD_PARAMETERS + 1));
  }
  const moved = await applyOperation(
    tx,
    issuanceOperation(draft, terms.mode === 'live' ? 'pending' : 'single'),
  );
  if (moved.outcome === 'insufficient_funds') throw new ApiError('insufficient_funds');
  return terms.mode === 'live' ? 'held' : 'answered';
}

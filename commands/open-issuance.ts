import type { EntityManager } from '@mikro-orm/postgresql';
import { ApiError } from '../domain/api-error.ts';
import type { CardStatus } from '../domain/card-status.ts';
import { siblingId } from '../domain/ids.ts';
import { applyOperation } from '../ledger/apply-operation.ts';
import { announcementOf } from './announcement.ts';
import type { IssuanceContext } from './command-context.ts';
import { draftCard } from './draft-card.ts';
import { INSERT_CARD_PARAMETERS, insertCard } from './insert-card.ts';
import { issuanceNews } from './issuance-news.ts';
import { issuanceOperation } from './issuance-operation.ts';
import { lockIssuanceTerms } from './issuance-terms.ts';
import { lockCard } from './lock-card.ts';
import { type Opening, runOpening } from './run-opening.ts';
import { withIssued } from './with-issued.ts';

/**
 * The first step of an issuance. Live mode: the pending card and its hold. Test mode, whose network is a function of
 * ours that always says yes, needs no hold: active card, money, event and answer are this one transaction. A refusal
 * becomes the claim's answer and leaves nothing else behind. Run again for the same claim it changes nothing and says
 * the same.
 */
export function openIssuance(context: IssuanceContext, claimId: string): Promise<Opening> {
  const cardId = siblingId('card', claimId);
  return runOpening(
    context,
    claimId,
    (tx) => open(tx, context, claimId, cardId),
    async (tx) => openingOf((await lockCard(tx, cardId))?.status ?? null),
  );
}

function openingOf(status: CardStatus | null): Opening | null {
  if (status === null) return null;
  return status === 'funding_pending' ? 'held' : 'answered';
}

async function open(
  tx: EntityManager,
  context: IssuanceContext,
  claimId: string,
  cardId: string,
): Promise<Opening> {
  const terms = await lockIssuanceTerms(tx, context, claimId, cardId);
  if (terms === null) return 'answered';
  const found = openingOf(terms.cardStatus);
  if (found !== null) return found;
  if (terms.answered) return 'answered';

  const draft = draftCard(cardId, terms);
  if (terms.mode === 'live') {
    await insertCard(tx, draft);
  } else {
    const card = withIssued(draft, await context.issueTestCard(cardId));
    const news = announcementOf(context.ring, claimId, issuanceNews(card), INSERT_CARD_PARAMETERS + 1);
    await insertCard(tx, card, news);
  }
  const moved = await applyOperation(
    tx,
    issuanceOperation(draft, terms.mode === 'live' ? 'pending' : 'single'),
  );
  if (moved.outcome === 'insufficient_funds') throw new ApiError('insufficient_funds');
  return terms.mode === 'live' ? 'held' : 'answered';
}

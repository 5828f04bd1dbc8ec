import type { EntityManager } from '@mikro-orm/postgresql';
import type { CardStatus } from '../../domain/card-status.ts';
import { siblingId } from '../../domain/ids.ts';
import { lockCard } from '../card-status/lock-card.ts';
import type { IssuanceContext } from '../command-context.ts';
import { draftCard } from './draft-card.ts';
import { insertFunding } from './insert-funding.ts';
import { issuanceOperation } from './issuance-operation.ts';
import { lockIssuanceTerms } from './issuance-terms.ts';
import { newCard } from './new-card.ts';
import { type Opening, runOpening } from './run-opening.ts';

/**
 * The first step of an issuance in live mode: the pending card and its hold. A refusal becomes the claim's answer and
 * leaves nothing else behind. Run again for the same claim it changes nothing and says the same.
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
  await insertFunding(tx, newCard(draft), issuanceOperation(draft, 'pending'));
  return 'held';
}

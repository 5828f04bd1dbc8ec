import type { EntityManager } from '@mikro-orm/postgresql';
import { siblingId } from '../../domain/ids.ts';
import type { TopUpStatus } from '../../domain/topup.ts';
import { lockCard } from '../card-status/lock-card.ts';
import type { CommandContext } from '../command-context.ts';
import { draftTopUp } from './draft-top-up.ts';
import { insertFunding } from './insert-funding.ts';
import { lockTopUp } from './lock-top-up.ts';
import { newTopUp } from './new-top-up.ts';
import { type Opening, runOpening } from './run-opening.ts';
import { topUpOperation } from './top-up-operation.ts';
import { lockTopUpTerms } from './top-up-terms.ts';

/**
 * The first step of a top-up in live mode: the pending top-up and its hold. A refusal becomes the claim's answer and
 * leaves nothing else behind. Run again for the same claim it changes nothing and says the same.
 */
export function openTopUp(context: CommandContext, claimId: string): Promise<Opening> {
  const topUpId = siblingId('topup', claimId);
  return runOpening(
    context,
    claimId,
    (tx) => open(tx, context, claimId, topUpId),
    async (tx) => openingOf((await lockTopUp(tx, topUpId))?.status ?? null),
  );
}

function openingOf(status: TopUpStatus | null): Opening | null {
  if (status === null) return null;
  return status === 'pending' ? 'held' : 'answered';
}

async function open(
  tx: EntityManager,
  context: CommandContext,
  claimId: string,
  topUpId: string,
): Promise<Opening> {
  const terms = await lockTopUpTerms(tx, context, claimId, topUpId);
  if (terms === null) return 'answered';
  const found = openingOf(terms.topUpStatus);
  if (found !== null) return found;
  if (terms.answered) return 'answered';

  const card = await lockCard(tx, terms.cardId);
  if (card === undefined) throw new Error(`the card ${terms.cardId} of a top-up is gone`);
  const draft = draftTopUp(topUpId, terms, card);
  await insertFunding(tx, newTopUp(draft), topUpOperation(draft, 'pending'));
  return 'held';
}

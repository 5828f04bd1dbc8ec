import type { EntityManager } from '@mikro-orm/postgresql';
import type { KeyRing } from '../../crypto/key-ring.ts';
import { cardColumns } from '../../db/columns.ts';
import { query } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import type { IssuedCard } from '../../domain/card.ts';
import { siblingId } from '../../domain/ids.ts';
import type { CardRow } from '../../resources/card.ts';
import type { CommandContext } from '../command-context.ts';
import { finishCard } from './finish-card.ts';
import { issuanceOperation } from './issuance-operation.ts';
import { withIssued } from './with-issued.ts';

/**
 * The network issued: posts the hold, makes the card active, writes `card.issued`, and answers the claim with 201 if it
 * has no answer yet. A card that isn't pending any more is left as it is.
 */
export async function activateCard(
  context: CommandContext,
  claimId: string,
  issued: IssuedCard,
): Promise<void> {
  const { orm, ring } = context;
  await transaction(orm, async (tx) => {
    const [card] = await query<CardRow>(tx, LOCK, [claimId, siblingId('card', claimId)]);
    if (card?.status !== 'funding_pending') return;
    await postIssuance(tx, ring, claimId, card, issued);
  });
}

/** {@link activateCard} in the caller's transaction, which holds the claim and the pending card. */
export async function postIssuance(
  tx: EntityManager,
  ring: KeyRing,
  claimId: string,
  card: CardRow,
  issued: IssuedCard,
): Promise<void> {
  await finishCard(tx, ring, claimId, withIssued(card, issued), issuanceOperation(card, 'post'));
}

/** The claim, then the card. */
const LOCK = `
  SELECT ${cardColumns('d')} FROM idempotency_claim c CROSS JOIN card d
  WHERE c.id = $1 AND d.id = $2
  FOR NO KEY UPDATE`;

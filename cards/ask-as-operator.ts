import { sql } from 'kysely';
import type { StatusChangeOperation } from '../domain/card-status.ts';
import { unknownId } from '../domain/refusal.ts';
import { newId } from '../platform/crypto/new-id.ts';
import type { Row } from '../platform/db/entities.ts';
import { writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import { type Operator, recordAudit } from '../requests/operator-context.ts';

const ACTIONS: Record<StatusChangeOperation, string> = {
  freeze_card: 'card.freeze',
  unfreeze_card: 'card.unfreeze',
  block_card: 'card.block',
};

/**
 * Asks for a freeze, unfreeze or block, and records who did and why. The sweep of abandoned claims starts the work, as it does
 * for partners' requests whose process died; in test mode too.
 * @throws Refusal if there is no such card
 */
export function askForStatusChange(
  { orm, actor }: Operator,
  asked: { cardId: string; operation: StatusChangeOperation; reason: string },
): Promise<{ claimId: string; requestId: string }> {
  const { cardId, operation, reason } = asked;
  return transaction(orm, async (tx) => {
    // In this order, because a request's claim is looked for from the time of the request's id on.
    const requestId = newId('req');
    const claimId = newId('claim');
    const [card] = await claim(tx, { claimId, cardId, operation, requestId });
    if (card === undefined) throw unknownId('card', cardId, 'run "operator card list"');
    const { partner_id: partnerId, mode } = card;
    recordAudit(tx, {
      actor,
      action: ACTIONS[operation],
      subject: cardId,
      detail: { partnerId, mode, requestId, reason },
    });
    return { claimId, requestId };
  });
}

interface Claiming {
  claimId: string;
  cardId: string;
  operation: StatusChangeOperation;
  requestId: string;
}

const claim = writeStatement(
  (_, { claimId, cardId, operation, requestId }: Claiming) => sql<Row<'card', 'partner_id' | 'mode'>>`
    SELECT partner_id, mode FROM claim_status_change(${claimId}, ${cardId}, ${operation}, ${requestId})`,
);

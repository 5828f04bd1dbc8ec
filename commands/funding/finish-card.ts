import type { EntityManager } from '@mikro-orm/postgresql';
import type { KeyRing } from '../../crypto/key-ring.ts';
import { applyOperationWith } from '../../ledger/apply-operation.ts';
import type { LedgerOperation } from '../../ledger/operation.ts';
import type { CardRow } from '../../resources/card.ts';
import { announcementOf } from '../idempotency/announcement.ts';
import { issuanceNews } from './issuance-news.ts';

/**
 * Ends a pending issuance in one statement, in the caller's transaction, which holds the claim and the card: its money,
 * the card's row, its event, and the answer of the claim if nothing was answered yet.
 * @param card the row as it is to be; its status says how the issuance ended.
 * @param operation what becomes of the hold
 * @throws LedgerConflict, LedgerRejected: roll back
 */
export async function finishCard(
  tx: EntityManager,
  ring: KeyRing,
  claimId: string,
  card: CardRow & { status: 'active' | 'failed' },
  operation: LedgerOperation,
): Promise<void> {
  const own = [
    card.id,
    card.status,
    card.network_card_id,
    card.last4,
    card.exp_month,
    card.exp_year,
    card.failure_code,
  ];
  const announcement = announcementOf(ring, claimId, issuanceNews(card), own.length + 1);
  const ended = `done AS (
       UPDATE card SET status = $2, network_card_id = $3, last4 = $4, exp_month = $5, exp_year = $6, failure_code = $7,
         overdue_since = NULL
       WHERE id = $1 AND status = 'funding_pending'
       RETURNING id, partner_id, mode
     )`;
  await applyOperationWith(tx, operation, {
    ctes: [ended, ...announcement.ctes],
    values: [...own, ...announcement.values],
    reads: {},
  });
}

import type { EntityManager } from '@mikro-orm/postgresql';
import type { KeyRing } from '../../crypto/key-ring.ts';
import { query } from '../../db/sql.ts';
import { siblingId } from '../../domain/ids.ts';
import type { CardRow } from '../../resources/card.ts';
import { announcementOf } from '../idempotency/announcement.ts';
import { type EndedTopUp, topUpNews } from './top-up-news.ts';

/**
 * Ends a pending top-up in one statement, in the caller's transaction: its row, its event, and the answer of the claim
 * if nothing was answered yet.
 * @param topUp the row as it is to be; its status says how it ended.
 * @param card the row as it is from now on
 */
export async function finishTopUp(
  tx: EntityManager,
  ring: KeyRing,
  topUp: EndedTopUp,
  card: CardRow,
): Promise<void> {
  const { id, status, failure_code, card_balance_cents, completed_at } = topUp;
  const own = [id, status, failure_code, card_balance_cents, completed_at];
  const announcement = announcementOf(ring, siblingId('claim', id), topUpNews(topUp, card), own.length + 1);
  await query(
    tx,
    `WITH done AS (
       UPDATE topup SET status = $2, failure_code = $3, card_balance_cents = $4, completed_at = $5, overdue_since = NULL
       WHERE id = $1 AND status = 'pending'
       RETURNING partner_id, mode
     ), ${announcement.ctes.join(', ')}
     SELECT FROM done`,
    [...own, ...announcement.values],
  );
}

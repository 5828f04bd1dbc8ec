import type { EntityManager } from '@mikro-orm/postgresql';
import type { KeyRing } from '../../crypto/key-ring.ts';
import { query } from '../../db/sql.ts';
import { STATUS_CHANGES } from '../../domain/card-status.ts';
import { readCardBalance } from '../../ledger/balances.ts';
import { presentCard } from '../../resources/card.ts';
import { announcementOf, type News } from '../idempotency/announcement.ts';
import type { LockedStatusChange } from './lock-status-change.ts';
import { releaseBlockedCard } from './release-blocked-card.ts';

/**
 * Makes the change, in the caller's transaction: the card, its event, the claim's answer, and what else a block does.
 * @returns the claims that have got their answer
 */
export async function finishStatusChange(
  tx: EntityManager,
  ring: KeyRing,
  claimId: string,
  { operation, card: before }: LockedStatusChange,
): Promise<string[]> {
  const { to, event: type } = STATUS_CHANGES[operation];
  const card = { ...before, status: to };
  const ended = to === 'blocked' ? await releaseBlockedCard(tx, ring, card) : [];
  const resource = presentCard(card, await readCardBalance(tx, card.id));
  const news: News = {
    type,
    mode: card.mode,
    cardId: card.id,
    data: { card: resource },
    answer: { status: 200, resource },
  };
  const own = [card.id, to];
  const announcement = announcementOf(ring, claimId, news, own.length + 1);
  await query(
    tx,
    `WITH done AS (
       UPDATE card SET status = $2, status_change_claim_id = NULL WHERE id = $1 RETURNING partner_id, mode
     ), ${announcement.ctes.join(', ')}
     SELECT FROM done`,
    [...own, ...announcement.values],
  );
  return [claimId, ...ended];
}

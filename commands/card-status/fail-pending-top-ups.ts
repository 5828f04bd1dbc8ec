import type { EntityManager } from '@mikro-orm/postgresql';
import type { KeyRing } from '../../crypto/key-ring.ts';
import { topUpColumns } from '../../db/columns.ts';
import { query } from '../../db/sql.ts';
import { siblingId } from '../../domain/ids.ts';
import { topUpNotPossible } from '../../domain/topup.ts';
import { applyOperations } from '../../ledger/apply-operation.ts';
import { readCardBalance } from '../../ledger/balances.ts';
import { encodeOperation } from '../../ledger/operation.ts';
import type { CardRow } from '../../resources/card.ts';
import type { TopUpRow } from '../../resources/topup.ts';
import { refuseTopUp } from '../funding/refuse-top-up.ts';
import { topUpOperation } from '../funding/top-up-operation.ts';

/**
 * Locks what {@link failPendingTopUps} changes and what comes before the card in the order of locks: the account's
 * usage, so that no top-up can begin, and the claims of those that are pending. The caller locks the card next.
 */
export async function lockPendingTopUps(tx: EntityManager, cardId: string): Promise<void> {
  await query(
    tx,
    `SELECT FROM card k JOIN account_usage u ON u.partner_id = k.partner_id AND u.mode = k.mode WHERE k.id = $1
     FOR NO KEY UPDATE OF u`,
    [cardId],
  );
  // A later statement: a wait does not refresh its own statement's snapshot.
  await query(
    tx,
    `SELECT FROM idempotency_claim WHERE id IN (
       SELECT 'claim' || substr(id, 6) FROM topup WHERE card_id = $1 AND status = 'pending')
     ORDER BY id FOR NO KEY UPDATE`,
    [cardId],
  );
}

/**
 * Ends every pending top-up of a card that is blocked (decisions.md, "Rules": it fails with `card_blocked` and its hold
 * is released), in the caller's transaction, which holds the locks of {@link lockPendingTopUps} and the card's. One whose
 * claim has no answer yet is refused with 409 and leaves nothing behind.
 * @param card the row as it is from now on; what the ledger says is on it now is what answers and events say.
 * @returns the claims that have got their answer: whoever waits for them can be told after the commit.
 */
export async function failPendingTopUps(tx: EntityManager, ring: KeyRing, card: CardRow): Promise<string[]> {
  const pending = await query<TopUpRow & { answered: boolean }>(
    tx,
    `SELECT ${topUpColumns('t')}, c.response_status IS NOT NULL AS answered
     FROM topup t JOIN idempotency_claim c ON c.id = 'claim' || substr(t.id, 6)
     WHERE t.card_id = $1 AND t.status = 'pending' ORDER BY t.id FOR NO KEY UPDATE OF t`,
    [card.id],
  );
  if (pending.length === 0) return [];
  const voids = pending.map((topUp) => encodeOperation(topUpOperation(topUp, 'void')));
  for (const released of await applyOperations(tx, voids)) if (released instanceof Error) throw released;
  const cardBalanceCents = await readCardBalance(tx, card.id);
  for (const { answered, ...topUp } of pending) {
    await refuseTopUp(tx, ring, {
      ...{ topUp, card, cardBalanceCents, answered },
      ...{ failure: 'card_blocked' as const, refusal: topUpNotPossible(card.status) },
    });
  }
  return pending.filter(({ answered }) => !answered).map(({ id }) => siblingId('claim', id));
}

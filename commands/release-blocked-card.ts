import type { EntityManager } from '@mikro-orm/postgresql';
import type { KeyRing } from '../db/key-ring.ts';
import { query } from '../db/sql.ts';
import type { CardRow } from '../domain/card-resource.ts';
import { applyOperation } from '../ledger/apply-operation.ts';
import { readCardBalance } from '../ledger/read-card-balance.ts';
import { failPendingTopUps } from './fail-pending-top-ups.ts';

/**
 * What a block does beside the status, in the caller's transaction, which holds the locks of {@link lockPendingTopUps}
 * and the card's: what is on the card goes to the prepaid balance, its pending top-ups fail, and it is no longer counted
 * as open (partner-api.md, "States and transitions"; decisions.md, "Rules").
 * @param card the row as it is from now on
 * @returns the claims that have got their answer beside the block's own
 */
export async function releaseBlockedCard(tx: EntityManager, ring: KeyRing, card: CardRow): Promise<string[]> {
  await query(
    tx,
    'UPDATE account_usage SET open_cards = open_cards - 1 WHERE partner_id = $1 AND mode = $2',
    [card.partner_id, card.mode],
  );
  await releaseBalance(tx, card);
  return failPendingTopUps(tx, ring, card);
}

async function releaseBalance(tx: EntityManager, card: CardRow): Promise<void> {
  const amountCents = await readCardBalance(tx, card.id);
  if (amountCents === 0) return;
  const released = await applyOperation(tx, {
    operationId: `block/${card.id}`,
    partnerId: card.partner_id,
    mode: card.mode,
    transfers: [
      {
        step: 'release',
        code: 'block_release',
        phase: 'single',
        debit: { cardId: card.id },
        credit: 'prepaid',
        amountCents,
      },
    ],
  });
  if (released.outcome !== 'applied') throw new Error(`the release of ${card.id} is ${released.outcome}`);
}

import type { EntityManager } from '@mikro-orm/postgresql';
import type { KeyRing } from '../db/key-ring.ts';
import { query } from '../db/sql.ts';
import type { CardRow } from '../domain/card-resource.ts';
import { applyOperation } from '../ledger/apply-operation.ts';
import type { LedgerOperation } from '../ledger/operation.ts';
import { readCardBalance } from '../ledger/read-card-balance.ts';
import { uncountOpenCard } from './account-usage.ts';
import { failPendingTopUps } from './fail-pending-top-ups.ts';

/**
 * What a block does beside the status, in the caller's transaction, which holds the locks of {@link lockPendingTopUps}
 * and the card's: what is on the card goes to the prepaid balance, its pending top-ups fail, and it is no longer counted
 * as open (partner-api.md, "States and transitions"; decisions.md, "Rules").
 * @param card the row as it is from now on
 * @returns the claims that have got their answer beside the block's own
 */
export async function releaseBlockedCard(tx: EntityManager, ring: KeyRing, card: CardRow): Promise<string[]> {
  await query(tx, `WITH done (partner_id, mode) AS (VALUES ($1::text, $2::text)) ${uncountOpenCard}`, [
    card.partner_id,
    card.mode,
  ]);
  await releaseBalance(tx, card);
  return failPendingTopUps(tx, ring, card);
}

async function releaseBalance(tx: EntityManager, card: CardRow): Promise<void> {
  const amountCents = await readCardBalance(tx, card.id);
  if (amountCents === 0) return;
  const released = await applyOperation(tx, releaseOperation(card, amountCents));
  if (released.outcome !== 'applied') throw new Error(`the release of ${card.id} is ${released.outcome}`);
}

/** What is on a card that is blocked goes to the prepaid balance. */
export function releaseOperation(card: CardRow, amountCents: number): LedgerOperation {
  const flow = { code: 'block_release', debit: { cardId: card.id }, credit: 'prepaid' } as const;
  return {
    operationId: `block/${card.id}`,
    partnerId: card.partner_id,
    mode: card.mode,
    transfers: [{ step: 'release', phase: 'single', amountCents, ...flow }],
  };
}

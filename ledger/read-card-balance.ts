import type { EntityManager } from '@mikro-orm/postgresql';
import { query } from '../db/sql.ts';

/** Cents on a card: 0 where nothing has touched it yet. */
export async function readCardBalance(em: EntityManager, cardId: string): Promise<number> {
  const [row] = await query<{ posted: string }>(em, 'SELECT posted FROM ledger.account WHERE card_id = $1', [
    cardId,
  ]);
  return Number(row?.posted ?? 0);
}

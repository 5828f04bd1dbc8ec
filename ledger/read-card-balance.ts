import type { EntityManager } from '@mikro-orm/postgresql';
import { readStatement } from '../db/sql.ts';

/** Cents on a card: 0 where nothing has touched it yet. */
export async function readCardBalance(em: EntityManager, cardId: string): Promise<number> {
  const [row] = await accountOf(em, { cardId });
  return Number(row?.posted ?? 0);
}

const accountOf = readStatement((db, { cardId }: { cardId: string }) =>
  db.selectFrom('ledger.account').select('posted').where('card_id', '=', cardId),
);

import type { EntityManager } from '@mikro-orm/postgresql';
import { CARD_COLUMNS } from '../../db/columns.ts';
import { readStatement } from '../../db/sql.ts';
import type { CardRow } from '../../resources/card.ts';

/** A card's row, locked until the transaction ends; undefined where there is none. */
export async function lockCard(tx: EntityManager, cardId: string): Promise<CardRow | undefined> {
  const [card] = await lock(tx, { cardId });
  return card;
}

const lock = readStatement((db, { cardId }: { cardId: string }) =>
  db.selectFrom('card').select(CARD_COLUMNS).where('id', '=', cardId).forNoKeyUpdate(),
);

import { CARD_COLUMNS } from '../../db/columns.ts';
import { type Transactor, writeStatement } from '../../db/sql.ts';
import type { CardRow } from '../../resources/card.ts';

// A separate module, because both funding and status changes lock the card, and the latter import the former.

/** Locks a card's row until the transaction ends. @returns undefined if there is none */
export async function lockCard(tx: Transactor, cardId: string): Promise<CardRow | undefined> {
  const [card] = await lock(tx, { cardId });
  return card;
}

const lock = writeStatement((db, { cardId }: { cardId: string }) =>
  db.selectFrom('card').select(CARD_COLUMNS).where('id', '=', cardId).forNoKeyUpdate(),
);

import type { EntityManager } from '@mikro-orm/postgresql';
import { cardColumns } from '../db/columns.ts';
import { query } from '../db/sql.ts';
import type { CardRow } from '../domain/card-resource.ts';

/** A card's row, locked until the transaction ends; undefined where there is none. */
export async function lockCard(tx: EntityManager, cardId: string): Promise<CardRow | undefined> {
  const [card] = await query<CardRow>(
    tx,
    `SELECT ${cardColumns('c')} FROM card c WHERE c.id = $1 FOR NO KEY UPDATE`,
    [cardId],
  );
  return card;
}

import { CARD_COLUMNS } from '../../db/columns.ts';
import { type Transactor, writeStatement } from '../../db/sql.ts';
import type { Tenant } from '../../domain/mode.ts';
import type { CardRow } from '../../resources/card.ts';

// A separate module, because both funding and status changes lock the card, and the latter import the former.

/** Locks a card's row until the transaction ends. @returns undefined if the account has none in this mode */
export async function lockCard(
  tx: Transactor,
  { partnerId, mode }: Tenant,
  cardId: string,
): Promise<CardRow | undefined> {
  const [card] = await lock(tx, { partnerId, mode, cardId });
  return card;
}

const lock = writeStatement((db, { partnerId, mode, cardId }: Tenant & { cardId: string }) =>
  db
    .selectFrom('card')
    .select(CARD_COLUMNS)
    .where('id', '=', cardId)
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .forNoKeyUpdate(),
);

/** {@link lockCard} for an operator's command, or a queue of the worker, which has only the card's id. */
export async function lockAnyCard(tx: Transactor, cardId: string): Promise<CardRow | undefined> {
  const [card] = await lockAny(tx, { cardId });
  return card;
}

const lockAny = writeStatement(
  (db, { cardId }: { cardId: string }) =>
    db.selectFrom('card').select(CARD_COLUMNS).where('id', '=', cardId).forNoKeyUpdate(),
  { acrossTenants: 'operator' },
);

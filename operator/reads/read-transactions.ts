import { TRANSACTION_COLUMNS } from '../../db/columns.ts';
import type { Orm } from '../../db/orm.ts';
import { readStatement } from '../../db/sql.ts';
import { presentTransaction, type TransactionResource } from '../../resources/transaction.ts';

const MOST = 100;

/** A transaction as partners see it, and what the network calls it. */
export interface OperatorTransaction extends TransactionResource {
  network_transaction_id: string;
}

/** The newest hundred of a card, newest first. */
export async function readTransactions(orm: Orm, cardId: string): Promise<OperatorTransaction[]> {
  const rows = await newestOfCard(orm.em.fork(), { cardId });
  return rows.map((row) => ({
    ...presentTransaction(row),
    network_transaction_id: row.network_transaction_id,
  }));
}

const newestOfCard = readStatement((db, { cardId }: { cardId: string }) =>
  db
    .selectFrom('card_transaction')
    .select(TRANSACTION_COLUMNS)
    .where('card_id', '=', cardId)
    .orderBy('id', 'desc')
    .limit(MOST),
);

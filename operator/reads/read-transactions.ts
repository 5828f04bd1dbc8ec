import type { Orm } from '../../db/orm.ts';
import { query } from '../../db/sql.ts';
import { transactionColumns } from '../../db/transaction-columns.ts';
import {
  presentTransaction,
  type TransactionResource,
  type TransactionRow,
} from '../../domain/transaction-resource.ts';

const MOST = 100;

/** A transaction as partners see it, and what the network calls it. */
export interface OperatorTransaction extends TransactionResource {
  network_transaction_id: string;
}

/** The newest hundred of a card, newest first. */
export async function readTransactions(orm: Orm, cardId: string): Promise<OperatorTransaction[]> {
  const rows = await query<TransactionRow>(
    orm.em.fork(),
    `SELECT ${transactionColumns('t')} FROM card_transaction t WHERE t.card_id = $1 ORDER BY t.id DESC LIMIT $2`,
    [cardId, MOST],
  );
  return rows.map((row) => ({
    ...presentTransaction(row),
    network_transaction_id: row.network_transaction_id,
  }));
}

import { sql } from 'kysely';
import { TRANSACTION_COLUMNS } from '../../db/columns.ts';
import { newestRows } from '../../db/newest.ts';
import type { Orm } from '../../db/orm.ts';
import { readStatement } from '../../db/sql.ts';
import { Mode } from '../../domain/mode.ts';
import {
  presentTransaction,
  type TransactionResource,
  type TransactionRow,
} from '../../resources/transaction.ts';
import type { Whose } from './topups.ts';

/** A transaction as the partner sees it, with its id at the network. */
interface OperatorTransaction extends TransactionResource {
  network_transaction_id: string;
}

/**
 * Newest first, declines included.
 * @param page.before only those older than this one
 * @param page.limit at most 10,001
 */
export async function readTransactions(
  orm: Orm,
  whose: Whose,
  { before, limit }: { before: string | null; limit: number },
): Promise<OperatorTransaction[]> {
  const em = orm.em.fork();
  const page = { before: before ?? '~', limit };
  const rows =
    'cardId' in whose
      ? await selectCardTransactions(limit)(em, { ...page, cardId: whose.cardId })
      : await selectPartnerTransactions(limit)(em, { ...page, partnerId: whose.partnerId });
  return rows.map((row) => ({
    ...presentTransaction(row),
    network_transaction_id: row.network_transaction_id,
  }));
}

interface Page {
  before: string;
  limit: number;
}

const selectCardTransactions = (maxRows: number) =>
  readStatement(
    (_, { cardId, before, limit }: Page & { cardId: string }) => {
      const where = { card_id: cardId };
      const columns = TRANSACTION_COLUMNS;
      const found = newestRows({
        table: 'card_transaction',
        columns,
        where,
        id: 'id',
        before,
        limit,
        maxRows,
      });
      return sql<TransactionRow>`SELECT t.* FROM ${found} t ORDER BY t.id DESC`;
    },
    { acrossTenants: 'operator' },
  );

const selectPartnerTransactions = (maxRows: number) =>
  readStatement(
    (_, { partnerId, before, limit }: Page & { partnerId: string }) => {
      const where = { partner_id: partnerId, mode: sql.ref('wanted.mode') };
      const columns = TRANSACTION_COLUMNS;
      const inMode = newestRows({
        table: 'card_transaction',
        columns,
        where,
        id: 'id',
        before,
        limit,
        maxRows,
      });
      return sql<TransactionRow>`SELECT one.* FROM unnest(${[...Mode.options]}::text[]) wanted (mode)
      CROSS JOIN LATERAL ${inMode} one ORDER BY one.id DESC LIMIT ${limit}`;
    },
    { acrossTenants: 'operator' },
  );

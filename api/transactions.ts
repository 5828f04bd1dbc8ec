import { sql } from 'kysely';
import { z } from 'zod';
import { TRANSACTION_COLUMNS } from '../db/columns.ts';
import { newestRows } from '../db/newest.ts';
import type { Orm } from '../db/orm.ts';
import type { ReadList } from '../db/read-replica.ts';
import { tenantStatement } from '../db/sql.ts';
import { ApiError } from '../domain/api-error.ts';
import { isId } from '../domain/ids.ts';
import type { Tenant } from '../domain/mode.ts';
import * as EXAMPLES from '../resources/examples.ts';
import { presentTransaction, TransactionResource, type TransactionRow } from '../resources/transaction.ts';
import {
  Limit,
  listEnvelope,
  type PageRequest,
  type PageValues,
  pageRows,
  pageValues,
  presentList,
  readCardCursor,
  StartingAfter,
} from './http/list-envelope.ts';
import { declare, resource } from './http/route.ts';

const listCardTransactions = declare({
  method: 'get',
  path: '/cards/:cardId/transactions',
  operationId: 'transactions.list',
  summary: "List a card's transactions",
  description: 'Purchases, refunds and declines, newest first.',
  query: z.strictObject({ limit: Limit, starting_after: StartingAfter('txn') }),
  responses: { 200: listEnvelope(TransactionResource) },
  examples: { 200: EXAMPLES.exampleList(EXAMPLES.TRANSACTION) },
  errors: ['card_not_found'],
});

export const transactions = resource({ listCardTransactions }, ({ readList }: { readList: ReadList }) => ({
  async listCardTransactions({ caller, params, query }) {
    const { limit, starting_after: startingAfter } = query;
    const rows = await readList((orm) =>
      readTransactionPage(orm, caller, params.cardId ?? '', { limit, startingAfter }),
    );
    return { status: 200, body: presentList(rows, limit) };
  },
}));

/**
 * Up to `limit` + 1 transactions of a card, newest first, by key.
 * @throws ApiError `card_not_found`; `validation_failed` if `startingAfter` is not a transaction of the card.
 */
export async function readTransactionPage(
  orm: Orm,
  tenant: Tenant,
  cardId: string,
  page: PageRequest,
): Promise<TransactionResource[]> {
  const rows = isId('card', cardId)
    ? await selectPage(orm.em.fork(), tenant, { ...pageValues(page), cardId })
    : [];
  if (rows.length === 0) throw new ApiError('card_not_found');
  return pageRows<TransactionRow>(rows, 'a transaction of this card').map(presentTransaction);
}

// One row for each transaction of the page, with the card; if the page is empty, one row with only the card.
const selectPage = tenantStatement((db, values: Tenant & PageValues & { cardId: string }) => {
  const { partnerId, mode, cardId, before, limit } = values;
  return db
    .selectFrom('card as c')
    .leftJoinLateral(
      newestRows({
        table: 'card_transaction',
        columns: TRANSACTION_COLUMNS,
        id: 'id',
        before,
        limit,
        where: { card_id: sql.ref('c.id') },
      }).as('page'),
      (join) => join.onTrue(),
    )
    .select(readCardCursor('card_transaction', values))
    .selectAll('page')
    .where('c.partner_id', '=', partnerId)
    .where('c.mode', '=', mode)
    .where('c.id', '=', cardId)
    .orderBy('page.id', 'desc');
});

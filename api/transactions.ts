import { z } from 'zod';
import { transactionColumns } from '../db/columns.ts';
import { newestOf } from '../db/newest.ts';
import type { Orm } from '../db/orm.ts';
import { tenantQuery } from '../db/tenant-query.ts';
import { ApiError } from '../domain/api-error.ts';
import { isId } from '../domain/ids.ts';
import type { Tenant } from '../domain/tenant.ts';
import { presentTransaction, TransactionResource, type TransactionRow } from '../resources/transaction.ts';
import { Limit, listOf, presentList, StartingAfter } from './http/list-envelope.ts';
import { declare, resource } from './http/route.ts';
import * as EXAMPLES from './openapi/examples.ts';

const listCardTransactions = declare({
  method: 'get',
  path: '/cards/:cardId/transactions',
  operationId: 'transactions.list',
  summary: "List a card's transactions",
  description: 'Purchases, refunds and declines, newest first.',
  query: z.strictObject({ limit: Limit, starting_after: StartingAfter('txn') }),
  responses: { 200: listOf(TransactionResource) },
  examples: { 200: EXAMPLES.listOf(EXAMPLES.TRANSACTION) },
  errors: ['card_not_found'],
});

export const transactions = resource({ listCardTransactions }, ({ orm }: { orm: Orm }) => ({
  async listCardTransactions({ caller, params, query }) {
    const { limit, starting_after: startingAfter } = query;
    const rows = await readTransactionPage(orm, caller, params.cardId ?? '', { limit, startingAfter });
    return { status: 200, body: presentList(rows, limit) };
  },
}));

/**
 * Up to `limit` + 1 transactions of a card, newest first, by key.
 * @throws ApiError `card_not_found`; `validation_failed` where `startingAfter` is no transaction of the card.
 */
export async function readTransactionPage(
  orm: Orm,
  tenant: Tenant,
  cardId: string,
  page: { limit: number; startingAfter?: string | undefined },
): Promise<TransactionResource[]> {
  if (!isId('card', cardId)) throw new ApiError('card_not_found');
  const { limit, startingAfter } = page;
  const isFirst = startingAfter === undefined;
  const rows = await tenantQuery<PageRow>(orm.em.fork(), tenant, isFirst ? FIRST : LATER, [
    cardId,
    limit + 1,
    ...(isFirst ? [] : [startingAfter]),
  ]);
  if (rows.length === 0) throw new ApiError('card_not_found');
  if (rows[0]?.known === false) {
    throw ApiError.ofField('starting_after', 'starting_after is not the id of a transaction of this card');
  }
  return rows.filter((row) => row.id !== null).map(presentTransaction);
}

type PageRow = TransactionRow & { known: boolean };

// One row without a transaction tells that there is the card.
const pageWhere = (known: string, before?: string) => `
  SELECT ${known} AS known, page.* FROM card c LEFT JOIN LATERAL (${newestOf({
    table: 'card_transaction',
    columns: transactionColumns('card_transaction'),
    where: { card_id: 'c.id' },
    id: 'id',
    before,
    limit: '$4',
  })}) page ON true
  WHERE c.partner_id = $1 AND c.mode = $2 AND c.id = $3
  ORDER BY page.id DESC`;

const FIRST = pageWhere('true');
const LATER = pageWhere('EXISTS (SELECT FROM card_transaction k WHERE k.id = $5 AND k.card_id = c.id)', '$5');

import { z } from 'zod';
import type { Orm } from '../../db/orm.ts';
import { TransactionResource } from '../../resources/transaction.ts';
import { Limit, listOf, presentList, StartingAfter } from '../http/list-envelope.ts';
import { route } from '../http/route.ts';
import * as EXAMPLES from '../openapi/examples.ts';
import { readTransactionPage } from '../read-transactions.ts';

export const listCardTransactions = ({ orm }: { orm: Orm }) =>
  route({
    method: 'get',
    path: '/cards/:cardId/transactions',
    operationId: 'transactions.list',
    summary: "List a card's transactions",
    description: 'Purchases, refunds and declines, newest first.',
    query: z.strictObject({ limit: Limit, starting_after: StartingAfter('txn') }),
    responses: { 200: listOf(TransactionResource) },
    examples: { 200: EXAMPLES.listOf(EXAMPLES.TRANSACTION) },
    errors: ['card_not_found'],
    async handle({ caller, params, query }) {
      const { limit, starting_after: startingAfter } = query;
      const rows = await readTransactionPage(orm, caller, params.cardId ?? '', { limit, startingAfter });
      return { status: 200, body: presentList(rows, limit) };
    },
  });

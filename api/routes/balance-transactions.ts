import { z } from 'zod';
import type { Orm } from '../../db/orm.ts';
import { BalanceTransactionResource } from '../../domain/balance-transaction-resource.ts';
import { Limit, listOf, presentList, StartingAfter } from '../http/list-envelope.ts';
import { route } from '../http/route.ts';
import * as EXAMPLES from '../openapi/examples.ts';
import { readBalanceTransactionPage } from '../read-balance-transactions.ts';

export const listBalanceTransactions = ({ orm }: { orm: Orm }) =>
  route({
    method: 'get',
    path: '/balance/transactions',
    operationId: 'balanceTransactions.list',
    summary: 'List balance transactions',
    description:
      'Every change of your balance, newest first. Their amounts add up to its `total`. Money on hold is not listed; what ' +
      'becomes of it is.',
    query: z.strictObject({ limit: Limit, starting_after: StartingAfter('btx') }),
    responses: { 200: listOf(BalanceTransactionResource) },
    examples: { 200: EXAMPLES.listOf(EXAMPLES.BALANCE_TRANSACTION) },
    async handle({ caller, query }) {
      const { limit, starting_after: startingAfter } = query;
      const rows = await readBalanceTransactionPage(orm, caller, { limit, startingAfter });
      return { status: 200, body: presentList(rows, limit) };
    },
  });

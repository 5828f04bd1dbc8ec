import { z } from 'zod';
import type { Orm } from '../../db/orm.ts';
import { BalanceTransactionResource } from '../../domain/balance-transaction-resource.ts';
import { Limit, listOf, presentList, StartingAfter } from '../list-envelope.ts';
import { readBalanceTransactionPage } from '../read-balance-transactions.ts';
import { route } from '../route.ts';

export const listBalanceTransactions = ({ orm }: { orm: Orm }) =>
  route({
    method: 'get',
    path: '/balance/transactions',
    summary: 'List every change of the balance, newest first',
    description:
      'For reconciliation: the amounts of all of them add up to the total. Holds are not among them.',
    query: z.strictObject({ limit: Limit, starting_after: StartingAfter('btx') }),
    responses: { 200: listOf(BalanceTransactionResource) },
    async handle({ caller, query }) {
      const { limit, starting_after: startingAfter } = query;
      const rows = await readBalanceTransactionPage(orm, caller, { limit, startingAfter });
      return { status: 200, body: presentList(rows, limit) };
    },
  });

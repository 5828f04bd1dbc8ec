import { z } from 'zod';
import type { Orm } from '../db/orm.ts';
import type { ReadList } from '../db/read-replica.ts';
import { ApiError } from '../domain/api-error.ts';
import type { Tenant } from '../domain/mode.ts';
import { readBalance, readPrepaidEntries } from '../ledger/balances.ts';
import { BalanceResource, presentBalance } from '../resources/balance.ts';
import {
  BalanceTransactionResource,
  parseVersion,
  presentBalanceTransaction,
} from '../resources/balance-transaction.ts';
import * as EXAMPLES from '../resources/examples.ts';
import { Limit, listEnvelope, presentList, StartingAfter } from './http/list-envelope.ts';
import { declare, resource } from './http/route.ts';

const getBalance = declare({
  method: 'get',
  path: '/balance',
  operationId: 'balance.get',
  summary: 'Retrieve your balance',
  description: "The balance of the key's mode.",
  query: z.strictObject({}),
  responses: { 200: BalanceResource },
  examples: { 200: EXAMPLES.BALANCE_WITH_HOLD },
});

const listBalanceTransactions = declare({
  method: 'get',
  path: '/balance/transactions',
  operationId: 'balanceTransactions.list',
  summary: 'List balance transactions',
  description:
    'Every change to your balance, newest first. The amounts add up to its `total`. Money on hold is not listed until it is ' +
    'debited.',
  query: z.strictObject({ limit: Limit, starting_after: StartingAfter('btx') }),
  responses: { 200: listEnvelope(BalanceTransactionResource) },
  examples: { 200: EXAMPLES.exampleList(EXAMPLES.BALANCE_TRANSACTION) },
});

export const balance = resource(
  { getBalance, listBalanceTransactions },
  ({ orm, readList }: { orm: Orm; readList: ReadList }) => ({
    getBalance: async ({ caller }) => ({
      status: 200,
      body: presentBalance(caller.mode, await readBalance(orm.em.fork(), caller.partnerId, caller.mode)),
    }),

    async listBalanceTransactions({ caller, query }) {
      const { limit, starting_after: startingAfter } = query;
      const rows = await readList((from) =>
        readBalanceTransactionPage(from, caller, { limit, startingAfter }),
      );
      return { status: 200, body: presentList(rows, limit) };
    },
  }),
);

/**
 * Up to `limit` + 1 changes to the prepaid balance, newest first, by key.
 * @throws ApiError `validation_failed` if `startingAfter` is not a change to this balance.
 */
export async function readBalanceTransactionPage(
  orm: Orm,
  { partnerId, mode }: Tenant,
  { limit, startingAfter }: { limit: number; startingAfter?: string | undefined },
): Promise<BalanceTransactionResource[]> {
  const em = orm.em.fork();
  if (startingAfter === undefined) {
    const entries = await readPrepaidEntries(em, partnerId, mode, { limit: limit + 1 });
    return entries.map((entry) => presentBalanceTransaction(entry, mode));
  }
  const fromVersion = parseVersion(startingAfter);
  const entries = await readPrepaidEntries(em, partnerId, mode, { limit: limit + 2, fromVersion });
  const [after, ...page] = entries.map((entry) => presentBalanceTransaction(entry, mode));
  if (after?.id !== startingAfter) {
    throw ApiError.ofField('starting_after', 'starting_after is not the id of a balance transaction');
  }
  return page;
}

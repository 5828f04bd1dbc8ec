import { z } from 'zod';
import {
  CREATED_FILTERS,
  Limit,
  listEnvelope,
  type PageRequest,
  presentList,
  requestedPage,
  StartingAfter,
} from '../api/http/list-envelope.ts';
import { declare, resource } from '../api/http/route.ts';
import { exampleList } from '../api/openapi/examples.ts';
import { ApiError } from '../domain/api-error.ts';
import type { Tenant } from '../domain/mode.ts';
import { EVERY_VERSION, readBalance, readPrepaidEntries, readPrepaidVersions } from '../ledger/balances.ts';
import type { Orm } from '../platform/db/orm.ts';
import type { ReadList } from '../platform/db/read-replica.ts';
import { BalanceResource, presentBalance } from './balance-resource.ts';
import {
  BalanceTransactionResource,
  parseVersion,
  presentBalanceTransaction,
} from './balance-transaction-resource.ts';
import { BALANCE_TRANSACTION, BALANCE_WITH_HOLD } from './examples.ts';

const getBalance = declare({
  method: 'get',
  path: '/balance',
  scope: 'balance:read',
  operationId: 'balance.get',
  summary: 'Retrieve your balance',
  description: "The balance of the key's mode.",
  query: z.strictObject({}),
  responses: { 200: BalanceResource },
  examples: { 200: BALANCE_WITH_HOLD },
});

const listBalanceTransactions = declare({
  method: 'get',
  path: '/balance/transactions',
  scope: 'balance:read',
  operationId: 'balanceTransactions.list',
  summary: 'List balance transactions',
  description:
    'Every change to your balance, newest first. The amounts add up to its `total`. Money on hold is not listed until it is ' +
    'debited.',
  query: z.strictObject({ limit: Limit, starting_after: StartingAfter('btx'), ...CREATED_FILTERS }),
  responses: { 200: listEnvelope(BalanceTransactionResource) },
  examples: { 200: exampleList(BALANCE_TRANSACTION) },
});

export const balance = resource(
  { getBalance, listBalanceTransactions },
  ({ orm, readList }: { orm: Orm; readList: ReadList }) => ({
    getBalance: async ({ caller }) => ({
      status: 200,
      body: presentBalance(caller.mode, await readBalance(orm.em.fork(), caller.partnerId, caller.mode)),
    }),

    async listBalanceTransactions({ caller, query }) {
      const rows = await readList((from) => readBalanceTransactionPage(from, caller, requestedPage(query)));
      return { status: 200, body: presentList(rows, query.limit) };
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
  page: PageRequest,
): Promise<BalanceTransactionResource[]> {
  const { limit, startingAfter, createdGte, createdLte } = page;
  const em = orm.em.fork();
  const read = (rows: number, fromVersion: bigint) =>
    readPrepaidEntries(em, partnerId, mode, { limit: rows, fromVersion });
  const isFiltered = createdGte !== undefined || createdLte !== undefined;
  const { above, upTo } = isFiltered
    ? await readPrepaidVersions(em, { partnerId, mode }, createdGte, createdLte)
    : EVERY_VERSION;
  const after = startingAfter === undefined ? null : parseVersion(startingAfter);
  const entries =
    after === null || after > upTo
      ? [...(after === null ? [] : await read(1, after)), ...(await read(limit + 1, upTo))]
      : await read(limit + 2, after);
  const known = after === null ? undefined : entries.shift();
  if (
    startingAfter !== undefined &&
    (known === undefined || presentBalanceTransaction(known, mode).id !== startingAfter)
  ) {
    throw ApiError.ofField('starting_after', 'starting_after is not the id of a balance transaction');
  }
  return entries
    .filter(({ version }) => version > above)
    .map((entry) => presentBalanceTransaction(entry, mode));
}

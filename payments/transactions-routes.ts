import { sql } from 'kysely';
import { z } from 'zod';
import {
  CREATED_FILTERS,
  idRange,
  Limit,
  listEnvelope,
  type PageRequest,
  type PageValues,
  pageRows,
  pageValues,
  presentList,
  readCardCursor,
  requestedPage,
  requireStartingAfter,
  StartingAfter,
} from '../api/http/list-envelope.ts';
import { declare, resource } from '../api/http/route.ts';
import { exampleList } from '../api/openapi/examples.ts';
import { ApiError } from '../domain/api-error.ts';
import { idPattern, isId } from '../domain/ids.ts';
import type { Tenant } from '../domain/mode.ts';
import { TransactionType } from '../domain/transaction.ts';
import { TRANSACTION_COLUMNS } from '../platform/db/columns.ts';
import { newestRows } from '../platform/db/newest.ts';
import type { Orm } from '../platform/db/orm.ts';
import type { ReadList } from '../platform/db/read-replica.ts';
import { tenantStatement } from '../platform/db/sql.ts';
import { TRANSACTION } from './examples.ts';
import { presentTransaction, TransactionResource, type TransactionRow } from './transaction-resource.ts';

const listCardTransactions = declare({
  method: 'get',
  path: '/cards/:cardId/transactions',
  scope: 'cards:read',
  operationId: 'transactions.list',
  summary: "List a card's transactions",
  description: 'Purchases, refunds and declines, newest first.',
  query: z.strictObject({ limit: Limit, starting_after: StartingAfter('txn'), ...CREATED_FILTERS }),
  responses: { 200: listEnvelope(TransactionResource) },
  examples: { 200: exampleList(TRANSACTION) },
  errors: ['card_not_found'],
});

const listTransactions = declare({
  method: 'get',
  path: '/transactions',
  scope: 'cards:read',
  operationId: 'transactions.listAll',
  summary: 'List the transactions of all cards',
  description: 'Purchases, refunds and declines on all of your cards, newest first.',
  query: z.strictObject({
    limit: Limit,
    starting_after: StartingAfter('txn'),
    card_id: z
      .string()
      .regex(new RegExp(idPattern('card')), 'must be the id of a card')
      .optional()
      .describe('Only transactions of this card.'),
    type: TransactionType.optional().describe('Only transactions of this type.'),
    ...CREATED_FILTERS,
  }),
  responses: { 200: listEnvelope(TransactionResource) },
  examples: { 200: exampleList(TRANSACTION) },
});

export const transactions = resource(
  { listTransactions, listCardTransactions },
  ({ readList }: { readList: ReadList }) => ({
    async listTransactions({ caller, query }) {
      const page = { ...requestedPage(query), cardId: query.card_id, type: query.type };
      const rows = await readList((orm) => readTransactionPage(orm, caller, page));
      return { status: 200, body: presentList(rows, query.limit) };
    },

    async listCardTransactions({ caller, params, query }) {
      const rows = await readList((orm) =>
        readCardTransactionPage(orm, caller, params.cardId ?? '', requestedPage(query)),
      );
      return { status: 200, body: presentList(rows, query.limit) };
    },
  }),
);

interface TransactionPage extends PageRequest {
  cardId?: string | undefined;
  type?: TransactionType | undefined;
}

/**
 * Up to `limit` + 1 transactions of all cards, newest first, by key. An unknown card has none.
 * @throws ApiError `validation_failed` if `startingAfter` is not a transaction of the tenant.
 */
export async function readTransactionPage(
  orm: Orm,
  tenant: Tenant,
  page: TransactionPage,
): Promise<TransactionResource[]> {
  const { cardId, type } = page;
  const ofCard = type === undefined ? selectOfCard : selectOfCardAndType;
  const ofAll = type === undefined ? selectAll : selectOfType;
  const read = cardId === undefined ? ofAll : ofCard;
  const values = { ...pageValues(page), cardId: cardId ?? '', type: type ?? 'purchase' };
  const rows = await read(orm.em.fork(), tenant, values);
  return pageRows<TransactionRow>(rows, 'a transaction').map(presentTransaction);
}

type AllValues = Tenant & PageValues & { cardId: string; type: TransactionType };

type Key = Parameters<typeof newestRows<'card_transaction', never>>[0]['where'];

const newestTransactions = (values: AllValues, where: Key) =>
  newestRows({
    table: 'card_transaction',
    columns: TRANSACTION_COLUMNS,
    id: 'id',
    ...idRange('txn', values),
    limit: values.limit,
    where,
  });

const allStatement = (key: (values: AllValues) => Key) =>
  tenantStatement((db, values: AllValues) =>
    db
      .selectFrom(requireStartingAfter('card_transaction', values).as('k'))
      .leftJoin(newestTransactions(values, key(values)).as('page'), (join) =>
        join.on('page.partner_id', '=', values.partnerId).on('page.mode', '=', values.mode),
      )
      .select('k.known')
      .selectAll('page')
      .orderBy('page.id', 'desc'),
  );
const selectAll = allStatement(({ partnerId, mode }) => ({ partner_id: partnerId, mode }));
const selectOfType = allStatement(({ partnerId, mode, type }) => ({ partner_id: partnerId, mode, type }));

const ofCardStatement = (key: (values: AllValues) => Key) =>
  tenantStatement((db, values: AllValues) =>
    db
      .selectFrom(requireStartingAfter('card_transaction', values).as('k'))
      .leftJoin('card as c', (join) =>
        join
          .on('c.partner_id', '=', values.partnerId)
          .on('c.mode', '=', values.mode)
          .on('c.id', '=', values.cardId),
      )
      .leftJoinLateral(
        newestTransactions(values, { card_id: sql.ref('c.id'), ...key(values) }).as('page'),
        (join) => join.onTrue(),
      )
      .select('k.known')
      .selectAll('page')
      .orderBy('page.id', 'desc'),
  );
const selectOfCard = ofCardStatement(() => ({}));
const selectOfCardAndType = ofCardStatement(({ type }) => ({ type }));

/**
 * Up to `limit` + 1 transactions of a card, newest first, by key.
 * @throws ApiError `card_not_found`; `validation_failed` if `startingAfter` is not a transaction of the card.
 */
export async function readCardTransactionPage(
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
  const { partnerId, mode, cardId, limit } = values;
  return db
    .selectFrom('card as c')
    .leftJoinLateral(
      newestRows({
        table: 'card_transaction',
        columns: TRANSACTION_COLUMNS,
        id: 'id',
        ...idRange('txn', values),
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

import {
  accountPage,
  accountPageOfCard,
  CardFilter,
  type CardPageValues,
  cardPage,
  declareList,
  pageRows,
  pageValues,
} from '../api/http/list.ts';
import { type PageRequest, presentList } from '../api/http/list-envelope.ts';
import { resource } from '../api/http/route.ts';
import { requestedCardId } from '../cards/routes.ts';
import type { Tenant } from '../domain/mode.ts';
import { TransactionType } from '../domain/transaction.ts';
import { TRANSACTION_COLUMNS } from '../platform/db/columns.ts';
import type { Orm } from '../platform/db/orm.ts';
import type { ReadList } from '../platform/db/read-replica.ts';
import { tenantStatement } from '../platform/db/sql.ts';
import { TRANSACTION } from './examples.ts';
import { presentTransaction, TransactionResource, type TransactionRow } from './transaction-resource.ts';

const listCardTransactions = declareList({
  path: '/cards/:cardId/transactions',
  scope: 'cards:read',
  operationId: 'transactions.list',
  summary: "List a card's transactions",
  description: 'Purchases, refunds and declines, newest first.',
  idPrefix: 'txn',
  item: TransactionResource,
  example: TRANSACTION,
  errors: ['card_not_found'],
});

const listTransactions = declareList({
  path: '/transactions',
  scope: 'cards:read',
  operationId: 'transactions.listAll',
  summary: 'List the transactions of all cards',
  description: 'Purchases, refunds and declines on all of your cards, newest first.',
  idPrefix: 'txn',
  item: TransactionResource,
  example: TRANSACTION,
  filters: {
    card_id: CardFilter.describe('Only transactions of this card.'),
    type: TransactionType.optional().describe('Only transactions of this type.'),
  },
});

export const transactions = resource(
  { listTransactions, listCardTransactions },
  ({ readList }: { readList: ReadList }) => ({
    async listTransactions({ caller, query }) {
      const rows = await readList((orm) => readTransactionPage(orm, caller, query));
      return { status: 200, body: presentList(rows, query.limit) };
    },

    async listCardTransactions({ caller, params, query }) {
      const cardId = requestedCardId({ params });
      const rows = await readList((orm) => readCardTransactionPage(orm, caller, cardId, query));
      return { status: 200, body: presentList(rows, query.limit) };
    },
  }),
);

interface TransactionPage extends PageRequest {
  card_id?: string | undefined;
  type?: TransactionType | undefined;
}

/**
 * Up to `limit` + 1 transactions of all cards, newest first, by key. An unknown card has none.
 * @throws ApiError `validation_failed` if `starting_after` is not a transaction of the tenant.
 */
export async function readTransactionPage(
  orm: Orm,
  tenant: Tenant,
  page: TransactionPage,
): Promise<TransactionResource[]> {
  const { card_id: cardId = '', type = 'purchase' } = page;
  const ofAll = page.type === undefined ? selectAll : selectOfType;
  const ofCard = page.type === undefined ? selectOfCard : selectOfCardAndType;
  const read = page.card_id === undefined ? ofAll : ofCard;
  const rows = await read(orm.em.fork(), tenant, { ...pageValues(page), cardId, type });
  return pageRows<TransactionRow>(rows, 'a transaction').map(presentTransaction);
}

/**
 * Up to `limit` + 1 transactions of a card, newest first, by key.
 * @throws ApiError `card_not_found`; `validation_failed` if `starting_after` is not a transaction of the card.
 */
export async function readCardTransactionPage(
  orm: Orm,
  tenant: Tenant,
  cardId: string,
  page: PageRequest,
): Promise<TransactionResource[]> {
  const rows = await selectCardPage(orm.em.fork(), tenant, { ...pageValues(page), cardId });
  return pageRows<TransactionRow>(rows, 'a transaction of this card').map(presentTransaction);
}

const TRANSACTIONS = { table: 'card_transaction', columns: TRANSACTION_COLUMNS, idPrefix: 'txn' } as const;

type Values = CardPageValues & { type: TransactionType };

const selectAll = tenantStatement((db, values: Values) => accountPage(db, values, TRANSACTIONS, {}));
const selectOfType = tenantStatement((db, values: Values) =>
  accountPage(db, values, TRANSACTIONS, { type: values.type }),
);
const selectOfCard = tenantStatement((db, values: Values) => accountPageOfCard(db, values, TRANSACTIONS, {}));
const selectOfCardAndType = tenantStatement((db, values: Values) =>
  accountPageOfCard(db, values, TRANSACTIONS, { type: values.type }),
);
const selectCardPage = tenantStatement((db, values: CardPageValues) =>
  cardPage(db, values, TRANSACTIONS, {}),
);

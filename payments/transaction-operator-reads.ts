import { sql } from 'kysely';
import type { Whose } from '../cards/transfers/reads.ts';
import { Mode } from '../domain/mode.ts';
import { unknownId } from '../domain/refusal.ts';
import { lowestId } from '../platform/crypto/new-id.ts';
import { of, TRANSACTION_COLUMNS } from '../platform/db/columns.ts';
import { newestRows } from '../platform/db/newest.ts';
import type { Orm } from '../platform/db/orm.ts';
import { readStatement } from '../platform/db/sql.ts';
import { presentTransaction, type TransactionResource, type TransactionRow } from './transaction-resource.ts';

/** A transaction as the partner sees it, with its id at the network. */
interface OperatorTransaction extends TransactionResource {
  network_transaction_id: string;
}

/** @throws Refusal if there is no such transaction. */
export async function readTransaction(
  orm: Orm,
  id: string,
): Promise<OperatorTransaction & { partner_id: string; partner_name: string }> {
  const [row] = await selectTransaction(orm.em.fork(), { id });
  if (row === undefined)
    throw unknownId(
      'txn',
      id,
      'run "operator transaction list"; "operator transaction undecided" has what is not booked',
    );
  const { partner_id, partner_name, network_transaction_id } = row;
  return { ...presentTransaction(row), network_transaction_id, partner_id, partner_name };
}

const selectTransaction = readStatement(
  (db, { id }: { id: string }) =>
    db
      .selectFrom('card_transaction as t')
      .innerJoin('partner as p', 'p.id', 't.partner_id')
      .select([...of('t', TRANSACTION_COLUMNS), 'p.name as partner_name'])
      .where('t.id', '=', id),
  { acrossTenants: 'operator' },
);

/**
 * Newest first, declines included.
 * @param page.since only those from then on
 * @param page.before only those older than this one
 * @param page.limit at most 10,001
 */
export async function readTransactions(
  orm: Orm,
  whose: Whose,
  { since, before, limit }: { since: Date | null; before: string | null; limit: number },
): Promise<OperatorTransaction[]> {
  const em = orm.em.fork();
  const page = { from: lowestId('txn', since ?? new Date(0)), before: before ?? '~', limit };
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
  from: string;
  before: string;
  limit: number;
}

/** @param where the first columns of an index that ends with the id */
const newest = (
  where: { card_id: string } | { partner_id: string; mode: unknown },
  { from, before, limit }: Page,
  maxRows: number,
) =>
  newestRows({
    table: 'card_transaction',
    columns: TRANSACTION_COLUMNS,
    where,
    id: 'id',
    from,
    before,
    limit,
    maxRows,
  });

const selectCardTransactions = (maxRows: number) =>
  readStatement(
    (_, values: Page & { cardId: string }) => sql<TransactionRow>`
      SELECT t.* FROM ${newest({ card_id: values.cardId }, values, maxRows)} t ORDER BY t.id DESC`,
    { acrossTenants: 'operator' },
  );

const selectPartnerTransactions = (maxRows: number) =>
  readStatement(
    (_, values: Page & { partnerId: string }) => {
      const inMode = newest({ partner_id: values.partnerId, mode: sql.ref('wanted.mode') }, values, maxRows);
      return sql<TransactionRow>`SELECT one.* FROM unnest(${[...Mode.options]}::text[]) wanted (mode)
      CROSS JOIN LATERAL ${inMode} one ORDER BY one.id DESC LIMIT ${values.limit}`;
    },
    { acrossTenants: 'operator' },
  );

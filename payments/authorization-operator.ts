import { sql } from 'kysely';
import { readCard } from '../cards/reads.ts';
import { AuthorizationStatus } from '../domain/authorization.ts';
import { unknownId } from '../domain/refusal.ts';
import { Text } from '../operator/flag-values.ts';
import { flag, list, type Noun, needed, oneOf, show } from '../operator/verbs.ts';
import { AUTHORIZATION_COLUMNS, TRANSACTION_COLUMNS } from '../platform/db/columns.ts';
import { newestRows } from '../platform/db/newest.ts';
import type { Orm } from '../platform/db/orm.ts';
import { columnList, readStatement } from '../platform/db/sql.ts';
import {
  type AuthorizationResource,
  type AuthorizationRow,
  presentAuthorization,
} from './authorization-resource.ts';
import { presentTransaction, type TransactionResource, type TransactionRow } from './transaction-resource.ts';

export const authorizationNoun: Noun = {
  list: list({
    about: "a card's authorizations, declined ones included, newest first",
    takes: {
      card: needed('<id>', 'of this card', Text(100)),
      status: flag('<status>', 'only those with this status', oneOf(AuthorizationStatus.options)),
    },
    pages: ['auth'],
    examples: ['--card card_01k0…', '--card card_01k0… --status pending'],
    columns:
      'created id status amount held_amount settled_amount decline_reason expires_at network_authorization_id',
    async read(orm, { card, status, before, limit }) {
      const { id: cardId } = await readCard(orm, card);
      return readAuthorizations(orm, { cardId, status, before, limit });
    },
    note: 'See all of one with "operator authorization show ID".',
  }),

  show: show({
    about: 'an authorization, its requests, and its clearings and declines',
    id: 'of the authorization',
    example: 'auth_01k0…',
    read: readAuthorization,
  }),
};

/** An authorization as the partner sees it, with its account and its id at the network. */
export interface OperatorAuthorization extends AuthorizationResource {
  partner_id: string;
  network_authorization_id: string | null;
}

interface Page {
  cardId: string;
  status: AuthorizationStatus | null;
  /** Only those older than this one. */
  before: string | null;
  /** At most 10,001. */
  limit: number;
}

/** A card's, newest first. */
export async function readAuthorizations(
  orm: Orm,
  { cardId, status, before, limit }: Page,
): Promise<OperatorAuthorization[]> {
  const rows = await selectCardAuthorizations(limit)(orm.em.fork(), {
    cardId,
    statuses: status === null ? [...AuthorizationStatus.options] : [status],
    before: before ?? '~',
    limit,
  });
  return rows.map(present);
}

// A page of each status through the index of partners' own lists, of which it keeps the newest.
const selectCardAuthorizations = (maxRows: number) =>
  readStatement(
    (_, { cardId, statuses, before, limit }: Omit<Page, 'status'> & { statuses: AuthorizationStatus[] }) => {
      const ofStatus = newestRows({
        table: 'card_authorization',
        columns: AUTHORIZATION_COLUMNS,
        where: { card_id: cardId, status: sql.ref('wanted.status') },
        id: 'id',
        before,
        limit,
        maxRows,
      });
      return sql<AuthorizationRow>`SELECT one.* FROM unnest(${statuses}::text[]) wanted (status)
        CROSS JOIN LATERAL ${ofStatus} one ORDER BY one.id DESC LIMIT ${limit}`;
    },
    { acrossTenants: 'operator' },
  );

/** @throws Refusal if there is no such authorization. */
export async function readAuthorization(
  orm: Orm,
  authorizationId: string,
): Promise<OperatorAuthorization & { transactions: TransactionResource[] }> {
  const em = orm.em.fork();
  const [row] = await authorizationWith(em, { authorizationId });
  if (row === undefined)
    throw unknownId('auth', authorizationId, 'run "operator authorization list --card ID"');
  const transactions = await selectTransactions(em, { authorizationId, cardId: row.card_id });
  return { ...present(row), transactions: transactions.map(presentTransaction) };
}

const authorizationWith = readStatement(
  (db, { authorizationId }: { authorizationId: string }) =>
    db.selectFrom('card_authorization').select(AUTHORIZATION_COLUMNS).where('id', '=', authorizationId),
  { acrossTenants: 'operator' },
);

/** Its clearings and declines: at most 100, newest first. */
const selectTransactions = readStatement(
  (_, { authorizationId, cardId }: { authorizationId: string; cardId: string }) =>
    sql<TransactionRow>`
      SELECT ${columnList('card_transaction', TRANSACTION_COLUMNS, 't')} FROM card_transaction t
      WHERE t.card_id = ${cardId} AND t.authorization_id = ${authorizationId} ORDER BY t.id DESC LIMIT 100`,
  { acrossTenants: 'operator' },
);

const present = (row: AuthorizationRow): OperatorAuthorization => ({
  ...presentAuthorization(row),
  partner_id: row.partner_id,
  network_authorization_id: row.network_authorization_id,
});

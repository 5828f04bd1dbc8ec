import { UnderscoreNamingStrategy } from '@mikro-orm/core';
import { sql } from 'kysely';
import { MAX_PAYMENTS_SHOWN, type PaymentStatus } from '../../domain/deposit.ts';
import { type Row, TABLES, type Tables } from './entities.ts';

/*
 * The columns that each resource is read with, by name, never `*`: if a migration changed the columns of a
 * prepared statement, it would fail in every process that runs during the migration.
 */

const naming = new UnderscoreNamingStrategy();

/** The columns of a table, in the entity's order, without those that are not read with it. */
function columnsOf<Name extends keyof Tables, Unread extends keyof Tables[Name] = never>(
  table: Name,
  unread: readonly Unread[] = [],
): readonly Exclude<keyof Tables[Name], Unread>[] {
  const properties = Object.entries(TABLES[table].meta.properties);
  const names = properties.map(([name, { fieldName }]) => fieldName ?? naming.propertyToColumnName(name));
  return names.filter((name) => !unread.includes(name as Unread)) as Exclude<keyof Tables[Name], Unread>[];
}

export const CARD_COLUMNS = columnsOf('card', [
  'claim_id',
  'status_change_claim_id',
  'counted_on',
  'asked',
  'decision',
  'not_recorded',
  'look_up_after',
  'update_unannounced',
  'cardholder_erased_at',
]);

export const TRANSFER_COLUMNS = columnsOf('card_transfer', [
  'claim_id',
  'counted_on',
  'asked',
  'decision',
  'not_recorded',
]);

export const TRANSACTION_COLUMNS = columnsOf('card_transaction');
export const AUTHORIZATION_COLUMNS = columnsOf('card_authorization');
export const LOGGED_REQUEST_COLUMNS = columnsOf('logged_request');

type Columns<Table extends keyof Tables> = readonly (keyof Tables[Table])[];

export const OPERATION_COLUMNS = [
  'id',
  'partner_id',
  'mode',
  'key',
  'operation',
  'operation_status',
  'resource_id',
  'card_id',
  'response_status',
  'created_at',
  'completed_at',
  'network_asked',
  'network_last_answer',
  'network_last_asked_at',
  'network_next_ask_at',
  'network_deadline',
] as const satisfies Columns<'idempotency_claim'>;

export const DEPOSIT_COLUMNS = [
  'id',
  'partner_id',
  'mode',
  'network',
  'contract_address',
  'address',
  'amount_cents',
  'status',
  'credited_cents',
  'created_at',
  'expires_at',
  'confirmed_at',
] as const satisfies Columns<'deposit'>;

export const PAYMENT_COLUMNS = [
  'payment_id',
  'said',
  'requests',
  'cleared_cents',
  'is_expired',
] as const satisfies Columns<'payment'>;

/** Columns for a `sql` template that inserts a row, without those that say whose it is. */
export const ownColumns = (columns: readonly string[]) =>
  sql.join(columns.filter((name) => name !== 'partner_id' && name !== 'mode').map((name) => sql.ref(name)));

/**
 * Why the card network gave no answer when it was last asked for a pending card or transfer; null if it did.
 */
export function networkProblem(table: 'card' | 'card_transfer') {
  return sql<string | null>`(SELECT c.network_problem FROM idempotency_claim c
    WHERE c.id = ${sql.ref(`${table}.claim_id`)})`.as('network_problem');
}

/**
 * How far an account's clock was ahead of the real time that a claim's id has
 * (docs/decisions/sandbox-clock.md).
 */
export function clockAhead(claim: string) {
  const [partnerId, mode, at] = ['partner_id', 'mode', 'created_at'].map((name) =>
    sql.ref(`${claim}.${name}`),
  );
  return sql<number>`extract(epoch FROM account_time(${partnerId}, ${mode}, ${at}) - ${at})::float8`.as(
    'clock_ahead_seconds',
  );
}

type PaymentOfDeposit = Row<
  'deposit_payment',
  'tx_hash' | 'log_index' | 'value_micro_usdt' | 'block_number' | 'block_time' | 'status' | 'review_reason'
>;

/**
 * A deposit's payments as one JSON array, in the order of the chain: `[]` if there are none.
 * @param deposit the alias of table `deposit` in the statement
 * @param which only those with this status; all if omitted
 */
export const selectPayments = (
  deposit: string,
  { status, limit = MAX_PAYMENTS_SHOWN }: { status?: PaymentStatus; limit?: number } = {},
) => {
  const which = status === undefined ? sql`true` : sql`p.status = ${sql.lit(status)}`;
  // Large numbers as text: JSON's would be rounded.
  return sql<PaymentOfDeposit[]>`coalesce((SELECT json_agg(p) FROM (
    SELECT p.tx_hash, p.log_index, p.value_micro_usdt::text, p.block_number::text, p.block_time,
      p.status, p.review_reason
    FROM deposit_payment p WHERE p.deposit_id = ${sql.ref(`${deposit}.id`)} AND ${which}
    ORDER BY p.block_number, p.transaction_index, p.log_index LIMIT ${sql.lit(limit)}) p), '[]')`;
};

/**
 * What arrived for a deposit, in decimal digits: all recorded payments, judged or not. The scan records them
 * without waiting for the deposit's row, so the row can't have their sum.
 * @param deposit the alias of table `deposit` in the statement
 */
export const receivedBy = (deposit: string) =>
  sql<string>`(SELECT coalesce(sum(p.value_micro_usdt), 0)::text FROM deposit_payment p
    WHERE p.deposit_id = ${sql.ref(`${deposit}.id`)})`;

/** Whether a payment `p` was judged and not sent back: it is in the balance, or may come to be. */
export const KEPT_PAYMENT = sql<boolean>`p.status IN ('credited', 'in_review')`;

/** Columns of a table's alias in a statement. */
export const of = <Alias extends string, Column extends string>(
  alias: Alias,
  columns: readonly Column[],
): `${Alias}.${Column}`[] => columns.map((column) => `${alias}.${column}` as const);

/** An API key as partners see it, in the account's time, for a `sql` template where the key is `k`. */
export const SHOWN_KEY = sql`k.id, k.partner_id, k.mode, k.name, k.hint, k.prefix, k.scopes,
  k.ip_allowlist, k.created_by,
  k.created_at, k.expires_at, account_time(k.partner_id, k.mode, k.last_used_at) AS last_used_at,
  CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked' WHEN k.expires_at <= account_now(k.partner_id, k.mode) THEN 'expired'
    ELSE 'active' END AS status`;

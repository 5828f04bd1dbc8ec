import { type RawBuilder, sql } from 'kysely';
import { type MadeBy, readMakers } from '../../accounts/request-reads.ts';
import { Mode } from '../../domain/mode.ts';
import { unknownId } from '../../domain/refusal.ts';
import { of, WITHDRAWAL_COLUMNS } from '../../platform/db/columns.ts';
import { newestRows } from '../../platform/db/newest.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { readStatement } from '../../platform/db/sql.ts';
import { withdrawFromCardWorkflowId } from '../../workflows/messages.ts';
import type { Whose } from './top-up-operator-reads.ts';
import { presentWithdrawal, type WithdrawalResource, type WithdrawalRow } from './withdrawal-resource.ts';

/** A withdrawal as the partner sees it, with its partner and its workflow. */
export interface OperatorWithdrawal extends WithdrawalResource {
  partner_id: string;
  partner_name: string;
  /** When its deadline passed without an answer from the network. */
  overdue_since: string | null;
  workflow_id: string;
}

/** A withdrawal in a list, with the request that made it; its fields are null if that is older than 31 days. */
export interface ListedWithdrawal extends OperatorWithdrawal, Nullable<MadeBy> {}

type Nullable<T> = { [Field in keyof T]: T[Field] | null };

/**
 * Newest first.
 * @param page.before only those older than this one
 * @param page.limit at most 10,001
 */
export async function readWithdrawals(
  orm: Orm,
  whose: Whose,
  { before, limit }: { before: string | null; limit: number },
): Promise<ListedWithdrawal[]> {
  const em = orm.em.fork();
  const page = { before: before ?? '~', limit };
  const rows =
    'cardId' in whose
      ? await selectCardWithdrawals(limit)(em, { ...page, cardId: whose.cardId })
      : await selectPartnerWithdrawals(limit)(em, { ...page, partnerId: whose.partnerId });
  const makers = await readMakers(
    orm,
    rows.map(({ id }) => id),
  );
  return rows.map((row) => {
    const maker = makers.get(row.id);
    return {
      ...presentForOperators(row),
      request_id: maker?.request_id ?? null,
      idempotency_key: maker?.idempotency_key ?? null,
      api_key_id: maker?.api_key_id ?? null,
      client_address: maker?.client_address ?? null,
    };
  });
}

/** @throws Refusal if there is no such withdrawal. */
export async function readWithdrawal(orm: Orm, withdrawalId: string): Promise<OperatorWithdrawal> {
  const withdrawal = await findWithdrawal(orm, withdrawalId);
  if (withdrawal === null) {
    throw unknownId('wdr', withdrawalId, 'its id is in GET /v1/cards/{cardId}/withdrawals of the partner');
  }
  return withdrawal;
}

export async function findWithdrawal(orm: Orm, withdrawalId: string): Promise<OperatorWithdrawal | null> {
  const [row] = await selectWithdrawal(orm.em.fork(), { withdrawalId });
  return row === undefined ? null : presentForOperators(row);
}

type OperatorRow = WithdrawalRow & {
  partner_id: string;
  partner_name: string;
  overdue_since: string | null;
  balance_cents: string | null;
};

function presentForOperators(row: OperatorRow): OperatorWithdrawal {
  return {
    ...presentWithdrawal(row, Number(row.balance_cents ?? 0)),
    partner_id: row.partner_id,
    partner_name: row.partner_name,
    overdue_since: row.overdue_since === null ? null : new Date(row.overdue_since).toISOString(),
    workflow_id: withdrawFromCardWorkflowId(row.id),
  };
}

const selectWithdrawal = readStatement(
  (db, { withdrawalId }: { withdrawalId: string }) =>
    db
      .selectFrom('withdrawal as w')
      .innerJoin('partner as p', 'p.id', 'w.partner_id')
      .leftJoin('ledger.account as a', 'a.card_id', 'w.card_id')
      .select(of('w', WITHDRAWAL_COLUMNS))
      .select(['p.name as partner_name', 'a.posted as balance_cents'])
      .where('w.id', '=', withdrawalId),
  { acrossTenants: 'operator' },
);

interface Page {
  before: string;
  limit: number;
}

const selectCardWithdrawals = (maxRows: number) =>
  readStatement(
    (_, { cardId, before, limit }: Page & { cardId: string }) => {
      const where = { card_id: cardId };
      const columns = WITHDRAWAL_COLUMNS;
      return withPartner(
        newestRows({ table: 'withdrawal', columns, where, id: 'id', before, limit, maxRows }),
        limit,
      );
    },
    { acrossTenants: 'operator' },
  );

const selectPartnerWithdrawals = (maxRows: number) =>
  readStatement(
    (_, { partnerId, before, limit }: Page & { partnerId: string }) => {
      const where = { partner_id: partnerId, mode: sql.ref('wanted.mode') };
      const columns = WITHDRAWAL_COLUMNS;
      const inMode = newestRows({ table: 'withdrawal', columns, where, id: 'id', before, limit, maxRows });
      const found = sql`(SELECT one.* FROM unnest(${[...Mode.options]}::text[]) wanted (mode)
      CROSS JOIN LATERAL ${inMode} one ORDER BY one.id DESC LIMIT ${limit})`;
      return withPartner(found, limit);
    },
    { acrossTenants: 'operator' },
  );

const withPartner = (found: RawBuilder<unknown>, limit: number) => sql<OperatorRow>`
  SELECT w.*, p.name AS partner_name, a.posted AS balance_cents FROM ${found} w
    CROSS JOIN LATERAL (SELECT name FROM partner WHERE id = w.partner_id LIMIT 1) p
    LEFT JOIN LATERAL (SELECT posted FROM ledger.account WHERE card_id = w.card_id LIMIT 1) a ON true
  ORDER BY w.id DESC LIMIT ${limit}`;

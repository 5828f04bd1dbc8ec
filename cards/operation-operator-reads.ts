import { sql } from 'kysely';
import { Mode } from '../domain/mode.ts';
import { unknownId } from '../domain/refusal.ts';
import { readIdTime } from '../platform/crypto/new-id.ts';
import { clockAhead, networkProblem, OPERATION_COLUMNS, of } from '../platform/db/columns.ts';
import { newestRows } from '../platform/db/newest.ts';
import type { Orm } from '../platform/db/orm.ts';
import { readStatement } from '../platform/db/sql.ts';
import { type OperationResource, type OperationRow, presentOperation } from '../requests/resource.ts';
import { claimOfOperation, OperationStatus } from '../requests/rules.ts';
import type { DecidedTable } from './decision.ts';

/** An operation as the partner sees it, with its account and what made it. */
export interface OperatorOperation extends OperationResource {
  partner_id: string;
  partner_name: string;
  request_id: string;
  /** Why the card network gave no answer when it was last asked; null if it did, and once the operation is over. */
  network_problem: string | null;
}

type OperatorRow = OperationRow & {
  partner_name: string;
  request_id: string;
  network_problem: string | null;
};

const present = (row: OperatorRow): OperatorOperation => ({
  ...presentOperation(row, readIdTime(row.id)),
  partner_id: row.partner_id,
  partner_name: row.partner_name,
  request_id: row.request_id,
  network_problem: row.operation_status === 'completed' ? null : row.network_problem,
});

/** @throws Refusal if there is no such operation. */
export async function readOperation(orm: Orm, operationId: string): Promise<OperatorOperation> {
  const claimId = claimOfOperation(operationId);
  const [row] = claimId === null ? [] : await selectOperation(orm.em.fork(), { claimId });
  if (row === undefined) {
    throw unknownId('op', operationId, 'operations are kept for 31 days; run "operator operation list"');
  }
  return present(row);
}

interface Page {
  partnerId: string;
  mode: Mode | null;
  status: OperationStatus | null;
  /** Only those older than this one. */
  before: string | null;
  /** At most 10,001. */
  limit: number;
}

/** A partner's, newest first. */
export async function readOperations(
  orm: Orm,
  { partnerId, mode, status, before, limit }: Page,
): Promise<OperatorOperation[]> {
  const rows = await selectOperations(limit)(orm.em.fork(), {
    partnerId,
    modes: mode === null ? [...Mode.options] : [mode],
    statuses: status === null ? [...OperationStatus.options] : [status],
    before: (before && claimOfOperation(before)) ?? '~',
    limit,
  });
  return rows.map(present);
}

const selectOperation = readStatement(
  (db, { claimId }: { claimId: string }) =>
    db
      .selectFrom('idempotency_claim as c')
      .innerJoin('partner as p', 'p.id', 'c.partner_id')
      .select([...of('c', OPERATION_COLUMNS), 'c.request_id', 'c.network_problem', 'p.name as partner_name'])
      .select(clockAhead('c'))
      .where('c.id', '=', claimId)
      .where('c.operation_status', 'is not', null)
      .$narrowType<{ key: string; operation_status: OperationStatus }>(),
  { acrossTenants: 'operator' },
);

interface Listing {
  partnerId: string;
  modes: Mode[];
  statuses: OperationStatus[];
  before: string;
  limit: number;
}

// A page of each mode and status through the index of partners' own lists, of which it keeps the newest.
const selectOperations = (maxRows: number) =>
  readStatement(
    (db, { partnerId, modes, statuses, before, limit }: Listing) => {
      const ofEach = newestRows({
        table: 'idempotency_claim',
        columns: [...OPERATION_COLUMNS, 'request_id', 'network_problem'],
        where: {
          partner_id: partnerId,
          mode: sql.ref('wanted_mode.mode'),
          operation_status: sql.ref('wanted.status'),
        },
        id: 'id',
        before,
        limit,
        maxRows,
      });
      const newest = sql<Omit<OperatorRow, 'partner_name'>>`(
        SELECT one.* FROM unnest(${modes}::text[]) wanted_mode (mode)
          CROSS JOIN unnest(${statuses}::text[]) wanted (status) CROSS JOIN LATERAL ${ofEach} one
        ORDER BY one.id DESC LIMIT ${limit})`;
      return db
        .selectFrom(newest.as('c'))
        .innerJoin('partner as p', 'p.id', 'c.partner_id')
        .selectAll('c')
        .select('p.name as partner_name')
        .select(clockAhead('c'))
        .orderBy('c.id', 'desc');
    },
    { acrossTenants: 'operator' },
  );

/** Why the card network gave no answer when it was last asked for something pending; null if it did. */
export async function readNetworkProblem(orm: Orm, table: DecidedTable, id: string): Promise<string | null> {
  const [row] = await PROBLEMS[table](orm.em.fork(), { id });
  return row?.network_problem ?? null;
}

const problemIn = (table: DecidedTable) =>
  readStatement(
    (db, { id }: { id: string }) => db.selectFrom(table).select(networkProblem(table)).where('id', '=', id),
    { acrossTenants: 'operator' },
  );

const PROBLEMS = { card: problemIn('card'), card_transfer: problemIn('card_transfer') };

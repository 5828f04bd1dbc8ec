import { sql } from 'kysely';
import { Mode } from '../domain/mode.ts';
import { unknownId } from '../domain/refusal.ts';
import { ModeName, Text } from '../operator/flag-values.ts';
import { flag, list, type Noun, needed, oneOf, show } from '../operator/verbs.ts';
import { readIdTime } from '../platform/crypto/new-id.ts';
import { clockAhead, OPERATION_COLUMNS, of } from '../platform/db/columns.ts';
import { newestRows } from '../platform/db/newest.ts';
import type { Orm } from '../platform/db/orm.ts';
import { readStatement } from '../platform/db/sql.ts';
import { type OperationRow, presentOperation } from './resource.ts';
import { claimOfOperation, OperationStatus } from './rules.ts';

export const operationNoun: Noun = {
  list: list({
    about: "a partner's operations of the last 31 days, newest first",
    takes: {
      partner: needed('<id>', 'of this partner', Text(100)),
      mode: flag('<mode>', 'only those in this mode', ModeName),
      status: flag('<status>', 'only those with this status', oneOf(OperationStatus.options)),
    },
    pages: ['op'],
    examples: [
      '--partner prt_01k0… --mode live --status awaiting_review',
      '--partner prt_01k0… --status in_progress',
    ],
    columns: 'created id mode type status resource response_status idempotency_key',
    read: readOperations,
    note: 'See all of one with "operator operation show ID".',
  }),

  show: show({
    about: 'what became of a request, by the Operation-Id of its responses',
    id: 'of the operation',
    example: 'op_01k0…',
    read: readOperation,
  }),
};

type OperatorRow = OperationRow & {
  partner_name: string;
  request_id: string;
  /** Why the card network gave no answer when it was last asked; null if it did. */
  network_problem: string | null;
};

/** An operation as the partner sees it, with its account and what made it. */
const present = (row: OperatorRow) => ({
  ...presentOperation(row, readIdTime(row.id)),
  partner_id: row.partner_id,
  partner_name: row.partner_name,
  request_id: row.request_id,
  network_problem: row.operation_status === 'completed' ? null : row.network_problem,
});

/** @throws Refusal if there is no such operation. */
async function readOperation(orm: Orm, operationId: string) {
  const claimId = claimOfOperation(operationId);
  const [row] = claimId === null ? [] : await selectOperation(orm.em.fork(), { claimId });
  if (row === undefined)
    throw unknownId('op', operationId, 'operations are kept for 31 days; run "operator operation list"');
  return present(row);
}

interface Wanted {
  partner: string;
  mode: Mode | null;
  status: OperationStatus | null;
  before: string | null;
  limit: number;
}

async function readOperations(orm: Orm, wanted: Wanted) {
  const { mode, status, limit } = wanted;
  const rows = await selectOperations(limit)(orm.em.fork(), {
    ...wanted,
    modes: mode === null ? [...Mode.options] : [mode],
    statuses: status === null ? [...OperationStatus.options] : [status],
    before: (wanted.before && claimOfOperation(wanted.before)) ?? '~',
  });
  return rows.map(present);
}

const COLUMNS = [...OPERATION_COLUMNS, 'request_id', 'network_problem'] as const;

const selectOperation = readStatement(
  (db, { claimId }: { claimId: string }) =>
    db
      .selectFrom('idempotency_claim as c')
      .innerJoin('partner as p', 'p.id', 'c.partner_id')
      .select(of('c', COLUMNS))
      .select(['p.name as partner_name', clockAhead('c')])
      .where('c.id', '=', claimId)
      .where('c.operation_status', 'is not', null)
      .$narrowType<{ key: string; operation_status: OperationStatus }>(),
  { acrossTenants: 'operator' },
);

// A page of each mode and status through the index of partners' own lists, of which it keeps the newest.
const selectOperations = (maxRows: number) =>
  readStatement(
    (
      _,
      { partner, modes, statuses, before, limit }: Wanted & { modes: Mode[]; statuses: OperationStatus[] },
    ) => {
      const mode = sql.ref('wanted_mode.mode');
      const where = { partner_id: partner, mode, operation_status: sql.ref('wanted.status') };
      const table = 'idempotency_claim' as const;
      const ofEach = newestRows({ table, columns: COLUMNS, where, id: 'id', before, limit, maxRows });
      return sql<OperatorRow>`SELECT c.*, p.name AS partner_name, ${clockAhead('c')} FROM (
          SELECT one.* FROM unnest(${modes}::text[]) wanted_mode (mode)
            CROSS JOIN unnest(${statuses}::text[]) wanted (status) CROSS JOIN LATERAL ${ofEach} one
          ORDER BY one.id DESC LIMIT ${limit}) c
        JOIN partner p ON p.id = c.partner_id ORDER BY c.id DESC`;
    },
    { acrossTenants: 'operator' },
  );

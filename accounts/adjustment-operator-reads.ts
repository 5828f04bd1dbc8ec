import { sql } from 'kysely';
import type { Mode } from '../domain/mode.ts';
import { unknownId } from '../domain/refusal.ts';
import type { Orm } from '../platform/db/orm.ts';
import { type Reads, readStatement } from '../platform/db/sql.ts';

/** An adjustment that waits for a second operator, or was decided. */
export interface AdjustmentRequestResource {
  id: string;
  object: 'adjustment_request';
  status: 'pending' | 'approved' | 'rejected';
  partner_id: string;
  partner_name: string;
  mode: Mode;
  amount: number;
  reason: string;
  key: string | null;
  /** OPERATOR, or user@host; the login is the database's. */
  requested_by: string;
  requested_login: string;
  decided_by: string | null;
  decided_login: string | null;
  decision_reason: string | null;
  created: string;
  decided: string | null;
}

/** Newest first. @param filter.status null: of any status */
export async function readRequests(
  orm: Orm,
  filter: { status: AdjustmentRequestResource['status'] | null; limit: number },
): Promise<AdjustmentRequestResource[]> {
  const { status, limit } = filter;
  const rows =
    status === null
      ? await newest(orm.em.fork(), { limit })
      : await newestWithStatus(orm.em.fork(), { status, limit });
  return rows.map(present);
}

/** @throws Refusal if there is no such request */
export async function readRequest(orm: Orm, id: string): Promise<AdjustmentRequestResource> {
  const [row] = await selectRequest(orm.em.fork(), { id });
  if (row === undefined) throw unknownId('adj', id, 'run "operator adjustment list"');
  return present(row);
}

const requests = (db: Reads) =>
  db
    .selectFrom('adjustment_request as r')
    .innerJoin('partner as p', 'p.id', 'r.partner_id')
    .selectAll('r')
    .select('p.name as partner_name');

const newest = readStatement(
  (db, { limit }: { limit: number }) => requests(db).orderBy('r.id', 'desc').limit(limit),
  { acrossTenants: 'operator' },
);
const newestWithStatus = readStatement(
  (db, { status, limit }: { status: string; limit: number }) =>
    requests(db).where(sql<string>`r.status`, '=', status).orderBy('r.id', 'desc').limit(limit),
  { acrossTenants: 'operator' },
);
const selectRequest = readStatement((db, { id }: { id: string }) => requests(db).where('r.id', '=', id), {
  acrossTenants: 'operator',
});

type Found = Awaited<ReturnType<typeof selectRequest>>[number];

function present(row: Found): AdjustmentRequestResource {
  return {
    id: row.id,
    object: 'adjustment_request',
    status: row.status,
    partner_id: row.partner_id,
    partner_name: row.partner_name,
    mode: row.mode,
    amount: Number(row.amount_cents),
    reason: row.reason,
    key: row.key,
    requested_by: row.requested_by,
    requested_login: row.requested_login,
    decided_by: row.decided_by,
    decided_login: row.decided_login,
    decision_reason: row.decision_reason,
    created: new Date(row.created_at).toISOString(),
    decided: row.decided_at === null ? null : new Date(row.decided_at).toISOString(),
  };
}

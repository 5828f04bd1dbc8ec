import type { EntityManager } from '@mikro-orm/postgresql';
import { query, type Sql } from '../../db/sql.ts';
import type { Decision, Verdict, WhyNot } from '../../domain/decision.ts';
import type { Mode } from '../../domain/mode.ts';
import { recordAudit } from '../accounts/operator-context.ts';

/** As it lies in the operation's row. One that was `refused` binds nobody. */
export type RecordedDecision = Decision & { refused?: WhyNot };

export type DecidedTable = 'card' | 'topup';

export async function readDecision(
  em: Sql,
  table: DecidedTable,
  id: string,
): Promise<RecordedDecision | null> {
  const [row] = await query<{ decision: RecordedDecision | null }>(
    em,
    `SELECT decision FROM ${table} WHERE id = $1`,
    [id],
  );
  return row?.decision ?? null;
}

/** Records an operator's decision, in the caller's transaction, which holds the row. It replaces the one before it. */
export async function recordDecision(
  tx: EntityManager,
  table: DecidedTable,
  id: string,
  { outcome, networkCardId }: Decision,
): Promise<void> {
  await query(
    tx,
    `UPDATE ${table} SET decision = jsonb_strip_nulls(jsonb_build_object('outcome', $2::text, 'networkCardId', $3::text))
     WHERE id = $1`,
    [id, outcome, networkCardId ?? null],
  );
}

/** Says in the row why its decision was not carried out, for whoever made it; in the caller's transaction. */
export async function refuseDecision(
  tx: EntityManager,
  table: DecidedTable,
  id: string,
  because: WhyNot,
): Promise<Verdict> {
  await query(
    tx,
    `UPDATE ${table} SET decision = decision || jsonb_build_object('refused', $2::text) WHERE id = $1`,
    [id, because],
  );
  return { settled: false, because };
}

/** A pending operation whose row the caller's transaction holds. */
export interface Pending {
  table: DecidedTable;
  id: string;
  /** What the audit says of it beside the decision. */
  about: { partnerId: string; mode: Mode; cardId?: string };
}

/**
 * Checks a decision that reached a workflow by the database and by this process's own configuration, since anybody who
 * can reach Temporal can send one: the operation is past its deadline, and an operator has not decided otherwise.
 * @returns the decision to carry out, and what writes the audit's row for it where no operator's command has.
 */
export async function checkDecision(
  tx: EntityManager,
  { table, id, about }: Pending,
  told: Decision,
  deadlineMs: number,
): Promise<{ decision: Decision; audit: () => void } | (Verdict & { settled: false })> {
  const [row] = await query<{ recorded: RecordedDecision | null; is_overdue: boolean }>(
    tx,
    `SELECT decision AS recorded, created_at <= now() - $2 * interval '1 millisecond' AS is_overdue
     FROM ${table} WHERE id = $1`,
    [id, deadlineMs],
  );
  if (row === undefined) throw new Error(`${id}, which is locked, is gone`);
  const { recorded } = row;
  if (!row.is_overdue) {
    // It may have been, by a shorter deadline.
    await query(tx, `UPDATE ${table} SET overdue_since = NULL WHERE id = $1 AND overdue_since IS NOT NULL`, [
      id,
    ]);
    await refuseDecision(tx, table, id, 'too_early');
    return { settled: false, because: 'too_early' };
  }
  const binds = recorded !== null && recorded.refused === undefined;
  if (binds && contradicts(told, recorded)) return { settled: false, because: 'contradicts_the_record' };
  const decision = binds ? recorded : told;
  const { outcome, networkCardId } = decision;
  const audit = () => {
    if (binds) return;
    const detail = { ...about, outcome, ...(networkCardId !== undefined && { networkCardId }) };
    recordAudit(tx, 'temporal', `${table}.resolve`, id, detail);
  };
  return { decision, audit };
}

function contradicts(told: Decision, recorded: Decision): boolean {
  if (told.outcome !== recorded.outcome) return true;
  return told.networkCardId !== undefined && told.networkCardId !== recorded.networkCardId;
}

/**
 * Marks a pending operation that is past its deadline: `attention list` shows it. One that is not is marked no longer.
 * @returns how long the network may still take, in milliseconds; 0 where that is over, or the operation is.
 */
export async function flagOverdue(
  em: Sql,
  pending: { table: DecidedTable; status: string; id: string; deadlineMs: number },
): Promise<number> {
  const { table, status, id, deadlineMs } = pending;
  const [row] = await query<{ remaining_ms: number }>(
    em,
    `UPDATE ${table} SET overdue_since =
       CASE WHEN created_at <= now() - $3 * interval '1 millisecond' THEN coalesce(overdue_since, now()) END
     WHERE id = $1 AND status = $2
     RETURNING greatest(0, ceil(extract(epoch FROM created_at - now()) * 1000 + $3))::float AS remaining_ms`,
    [id, status, deadlineMs],
  );
  return row?.remaining_ms ?? 0;
}

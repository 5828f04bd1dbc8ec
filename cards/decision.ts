import { sql } from 'kysely';
import type { Decision, NotRecorded, RecordedDecision, Verdict, WhyNot } from '../domain/decision.ts';
import type { Orm } from '../platform/db/orm.ts';
import {
  autocommitStatement,
  type Reader,
  readStatement,
  type Transactor,
  writeStatement,
} from '../platform/db/sql.ts';
import { lockClaim } from '../requests/claim.ts';

export type DecidedTable = 'card' | 'card_transfer';

export async function readDecision(
  em: Reader,
  table: DecidedTable,
  id: string,
): Promise<RecordedDecision | null> {
  const [row] = await STATEMENTS[table].read(em, { id, deadlineMs: 0 });
  return row?.decision ?? null;
}

/**
 * Records an operator's decision in the caller's transaction, which holds the row. It replaces any earlier
 * one.
 */
export async function recordDecision(
  tx: Transactor,
  table: DecidedTable,
  id: string,
  { outcome, networkCardId }: Decision,
): Promise<void> {
  await STATEMENTS[table].record(tx, { id, outcome, networkCardId: networkCardId ?? null });
}

/**
 * Records in the row why its decision was not applied, for the operator who made it; in the caller's
 * transaction.
 */
export async function refuseDecision(
  tx: Transactor,
  table: DecidedTable,
  id: string,
  because: WhyNot,
): Promise<Verdict & { over: false }> {
  await STATEMENTS[table].refuse(tx, { id, because });
  return { over: false, because };
}

/**
 * Like {@link refuseDecision}, by the claim, for a decision whose transaction has failed and will fail again.
 */
export async function refuseLastingly(
  orm: Orm,
  table: DecidedTable,
  claimId: string,
): Promise<Verdict & { over: false }> {
  await STATEMENTS[table].refuseOfClaim(orm, { claimId });
  return { over: false, because: 'not_recordable' };
}

/**
 * Checks a decision that a workflow received, because anybody with access to Temporal can send one. According
 * to the database and this process's own configuration, the operation has to be past its deadline, and no
 * operator may have decided otherwise.
 * @returns the decision to apply, and whether it is one that an operator has recorded
 */
export async function checkDecision(
  tx: Transactor,
  { table, id }: { table: DecidedTable; id: string },
  received: Decision,
  deadlineMs: number,
): Promise<{ decision: Decision; isRecorded: boolean } | (Verdict & { over: false })> {
  const [row] = await STATEMENTS[table].read(tx, { id, deadlineMs });
  if (row === undefined) throw new Error(`${id}, which is locked, is gone`);
  const { decision: recorded, is_overdue: isOverdue } = row;
  if (!isOverdue) {
    // It may have been flagged under a shorter deadline.
    await STATEMENTS[table].unflag(tx, { id });
    return refuseDecision(tx, table, id, 'too_early');
  }
  if (recorded === null || recorded.refused !== undefined) return { decision: received, isRecorded: false };
  if (contradicts(received, recorded)) return { over: false, because: 'contradicts_the_record' };
  return { decision: recorded, isRecorded: true };
}

function contradicts(received: Decision, recorded: Decision): boolean {
  if (received.outcome !== recorded.outcome) return true;
  return received.networkCardId !== undefined && received.networkCardId !== recorded.networkCardId;
}

/**
 * Marks a pending operation as past its deadline, so that `attention list` shows it, or unmarks it if it is
 * not.
 * @returns how long the network may still take, in milliseconds; 0 if its time is up, or the operation has
 * ended
 */
export async function flagOverdue(
  orm: Orm,
  table: DecidedTable,
  pending: { claimId: string; deadlineMs: number },
): Promise<number> {
  const [row] = await STATEMENTS[table].flag(orm, pending);
  return row?.remaining_ms ?? 0;
}

/**
 * Notes that the network's decision on a pending operation can't be recorded, and why, so that `attention
 * list` shows it.
 */
export async function noteNotRecorded(
  orm: Orm,
  table: DecidedTable,
  claimId: string,
  why: Omit<NotRecorded, 'at'>,
): Promise<void> {
  const { reason, networkCardId = null } = why;
  await STATEMENTS[table].note(orm, { claimId, reason, networkCardId });
}

/**
 * An operation that is not pending is over, unless it has not begun yet: then its claim still waits for a
 * response.
 */
export async function verdictOnMissing(tx: Transactor, claimId: string): Promise<Verdict> {
  const claim = await lockClaim(tx, claimId);
  return claim === null || claim.answered ? { over: true } : { over: false, because: 'too_early' };
}

/**
 * Locks the claim of a pending operation, before the caller locks its row: {@link markOverdue} changes both
 * (docs/decisions/one-order-of-locks.md).
 */
export async function lockPendingClaim(tx: Transactor, table: DecidedTable, id: string): Promise<void> {
  await STATEMENTS[table].lockClaim(tx, { id });
}

/** Marks a pending operation as past its deadline, in the caller's transaction. */
export async function markOverdue(tx: Transactor, table: DecidedTable, id: string): Promise<void> {
  await STATEMENTS[table].mark(tx, { id });
}

const decisionStatements = (name: DecidedTable) => {
  const table = sql.table(name);
  return {
    read: readStatement(
      (_, { id, deadlineMs }: { id: string; deadlineMs: number }) => sql<{
        decision: RecordedDecision | null;
        is_overdue: boolean;
      }>`
        SELECT decision, created_at <= now() - ${deadlineMs} * interval '1 millisecond' AS is_overdue
        FROM ${table} WHERE id = ${id}`,
      { acrossTenants: 'id' },
    ),
    record: writeStatement(
      (_, values: { id: string; outcome: string; networkCardId: string | null }) => sql`
        UPDATE ${table} SET decision = jsonb_strip_nulls(
          jsonb_build_object('outcome', ${values.outcome}::text, 'networkCardId', ${values.networkCardId}::text))
        WHERE id = ${values.id}`,
      { acrossTenants: 'id' },
    ),
    refuse: writeStatement(
      (_, { id, because }: { id: string; because: WhyNot }) => sql`
        UPDATE ${table} SET decision = decision || jsonb_build_object('refused', ${because}::text)
          WHERE id = ${id}`,
      { acrossTenants: 'id' },
    ),
    refuseOfClaim: autocommitStatement(
      (_, { claimId }: { claimId: string }) => sql`
        UPDATE ${table} SET decision = decision || '{"refused": "not_recordable"}'
          WHERE claim_id = ${claimId}`,
      { acrossTenants: 'id' },
    ),
    note: autocommitStatement(
      (_, values: { claimId: string; reason: string; networkCardId: string | null }) => sql`
        UPDATE ${table} SET not_recorded = jsonb_strip_nulls(jsonb_build_object('reason', ${values.reason}::text,
          'networkCardId', ${values.networkCardId}::text, 'at',
          coalesce(not_recorded ->> 'at', to_jsonb(now()) #>> '{}')))
        WHERE claim_id = ${values.claimId}`,
      { acrossTenants: 'id' },
    ),
    lockClaim: writeStatement(
      (_, { id }: { id: string }) => sql`
        SELECT FROM idempotency_claim WHERE id = (SELECT claim_id FROM ${table} WHERE id = ${id})
        FOR NO KEY UPDATE`,
      { acrossTenants: 'operator' },
    ),
    mark: writeStatement(
      (_, { id }: { id: string }) => sql`
        UPDATE ${table} SET overdue_since = coalesce(overdue_since, now()) WHERE id = ${id}`,
      { acrossTenants: 'id' },
    ),
    unflag: writeStatement(
      (_, { id }: { id: string }) => sql`
        UPDATE ${table} SET overdue_since = NULL WHERE id = ${id} AND overdue_since IS NOT NULL`,
      { acrossTenants: 'id' },
    ),
    // It locks the claim first, because the trigger follow_operation changes it
    // (docs/decisions/one-order-of-locks.md).
    flag: autocommitStatement(
      (_, values: { claimId: string; deadlineMs: number }) => sql<{ remaining_ms: number }>`
        WITH claim AS MATERIALIZED (
          SELECT id FROM idempotency_claim WHERE id = ${values.claimId} FOR NO KEY UPDATE)
        UPDATE ${table} SET overdue_since =
          CASE WHEN created_at <= now() - ${values.deadlineMs} * interval '1 millisecond'
            THEN coalesce(overdue_since, now()) END
        FROM claim WHERE claim_id = claim.id
        RETURNING greatest(0, ceil(extract(epoch FROM created_at - now()) * 1000 + ${values.deadlineMs}))::float
          AS remaining_ms`,
      { acrossTenants: 'id' },
    ),
  };
};
const STATEMENTS = {
  card: decisionStatements('card'),
  card_transfer: decisionStatements('card_transfer'),
};

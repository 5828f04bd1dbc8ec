import { sql } from 'kysely';
import type { Decision, RecordedDecision, Verdict, WhyNot } from '../domain/decision.ts';
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
  const [row] = await DECISIONS[table].read(em, { id, deadlineMs: 0 });
  return row?.decision ?? null;
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
  await DECISIONS[table].refuse(tx, { id, because });
  return { over: false, because };
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
  const [row] = await DECISIONS[table].read(tx, { id, deadlineMs });
  if (row === undefined) throw new Error(`${id}, which is locked, is gone`);
  const { decision: recorded, is_overdue: isOverdue } = row;
  if (!isOverdue) {
    // It may have been flagged under a shorter deadline.
    await DECISIONS[table].unflag(tx, { id });
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
 * An operation that is not pending is over, unless it has not begun yet: then its claim still waits for a
 * response.
 */
export async function verdictOnMissing(tx: Transactor, claimId: string): Promise<Verdict> {
  const claim = await lockClaim(tx, claimId);
  return claim === null || claim.answered ? { over: true } : { over: false, because: 'too_early' };
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
    /** Records an operator's decision, in a transaction that holds the row. It replaces any earlier one. */
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
    /** The same by the claim, for a decision whose transaction has failed and will fail again. */
    refuseOfClaim: autocommitStatement(
      (_, { claimId }: { claimId: string }) => sql`
        UPDATE ${table} SET decision = decision || '{"refused": "not_recordable"}'
          WHERE claim_id = ${claimId}`,
      { acrossTenants: 'id' },
    ),
    /** Notes that the network's decision can't be recorded, and why, so that `attention list` shows it. */
    note: autocommitStatement(
      (_, values: { claimId: string; reason: string; networkCardId: string | null }) => sql`
        UPDATE ${table} SET not_recorded = jsonb_strip_nulls(jsonb_build_object('reason', ${values.reason}::text,
          'networkCardId', ${values.networkCardId}::text, 'at',
          coalesce(not_recorded ->> 'at', to_jsonb(now()) #>> '{}')))
        WHERE claim_id = ${values.claimId}`,
      { acrossTenants: 'id' },
    ),
    /**
     * Locks the claim of a pending operation, before the caller locks its row: `mark` changes both
     * (docs/decisions/one-order-of-locks.md).
     */
    lockClaim: writeStatement(
      (_, { id }: { id: string }) => sql`
        SELECT FROM idempotency_claim WHERE id = (SELECT claim_id FROM ${table} WHERE id = ${id})
        FOR NO KEY UPDATE`,
      { acrossTenants: 'operator' },
    ),
    /** Marks a pending operation as past its deadline. */
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
    /**
     * Marks one that is past its deadline, so that `attention list` shows it, or unmarks it; no row if it has ended.
     * It locks the claim first, because the trigger follow_operation changes it (docs/decisions/one-order-of-locks.md).
     */
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
    /**
     * Why a claim's operation failed, if it did; no row if it was refused, or failed before it had a
     * response.
     */
    failure: readStatement(
      (_, { claimId }: { claimId: string }) => sql<{ failure_code: string | null }>`
        SELECT o.failure_code FROM idempotency_claim c JOIN ${table} o ON o.id = c.resource_id
        WHERE c.id = ${claimId}`,
      { acrossTenants: 'id' },
    ),
  };
};

/** The statements on what an operator or a deadline says of an operation, and how it ended, by its table. */
export const DECISIONS = {
  card: decisionStatements('card'),
  card_transfer: decisionStatements('card_transfer'),
};

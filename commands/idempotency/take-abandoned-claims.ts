import type { EntityManager } from '@mikro-orm/postgresql';
import type { Orm } from '../../db/orm.ts';
import { query } from '../../db/sql.ts';
import type { WorkflowOperation } from '../../domain/claim-operation.ts';
import type { Mode } from '../../domain/mode.ts';

/** An unanswered claim whose request nobody runs any more, the caller's to start until its lease ends. */
export interface AbandonedClaim {
  id: string;
  partner_id: string;
  mode: Mode;
  operation: WorkflowOperation;
  card_id: string | null;
  /** How often its work has been started, this time included. */
  attempts: number;
}

/**
 * Leases up to `limit` abandoned claims: those that were never tried first, the others by when they were tried last.
 * Accounts take turns, so one account's backlog delays nobody else's, and another caller gets other claims.
 */
export function takeAbandonedClaims(
  em: EntityManager,
  request: { operations: readonly WorkflowOperation[]; limit: number; leaseMs: number },
): Promise<AbandonedClaim[]> {
  return query<AbandonedClaim>(em, TAKE, [request.operations, request.limit, request.leaseMs]);
}

/** Leaves a claim alone for so long, unless it has its answer. */
export async function putClaimOff(orm: Orm, claimId: string, pauseMs: number): Promise<void> {
  await query(
    orm.em.fork(),
    `UPDATE idempotency_claim SET sweep_after = now() + $2 * interval '1 millisecond'
     WHERE id = $1 AND response_status IS NULL`,
    [claimId, pauseMs],
  );
}

const IS_ABANDONED = `c.response_status IS NULL AND c.operation = ANY ($1)
  AND c.sweep_after < now() AND c.lease_expires_at < now()`;

// The accounts that have unanswered claims are found by skipping through the index, not by reading the claims. Which of
// them come first is left to chance: in any order that is fixed the last would wait for all the others.
const TAKE = `
  WITH RECURSIVE account (partner_id, mode) AS (
    (SELECT partner_id, mode FROM idempotency_claim WHERE response_status IS NULL
     ORDER BY partner_id, mode LIMIT 1)
    UNION ALL
    SELECT following.* FROM account a CROSS JOIN LATERAL (
      SELECT c.partner_id, c.mode FROM idempotency_claim c
      WHERE c.response_status IS NULL AND (c.partner_id, c.mode) > (a.partner_id, a.mode)
      ORDER BY c.partner_id, c.mode LIMIT 1) following
  ), due AS MATERIALIZED (
    SELECT d.id FROM account a CROSS JOIN LATERAL (
      SELECT c.id, c.sweep_attempts > 0 AS was_tried, row_number() OVER (ORDER BY c.sweep_after, c.id) AS turn
      FROM idempotency_claim c WHERE c.partner_id = a.partner_id AND c.mode = a.mode AND ${IS_ABANDONED}
      ORDER BY c.sweep_after, c.id LIMIT $2) d
    ORDER BY d.was_tried, d.turn, random() LIMIT $2
  ), taken AS MATERIALIZED (
    SELECT c.id FROM idempotency_claim c WHERE c.id IN (SELECT id FROM due) AND ${IS_ABANDONED}
    FOR NO KEY UPDATE SKIP LOCKED
  )
  UPDATE idempotency_claim c
  SET sweep_after = now() + $3 * interval '1 millisecond', sweep_attempts = c.sweep_attempts + 1
  FROM taken WHERE c.id = taken.id
  RETURNING c.id, c.partner_id, c.mode, c.operation, c.card_id, c.sweep_attempts AS attempts`;

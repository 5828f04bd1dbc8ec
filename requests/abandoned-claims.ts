import { sql } from 'kysely';
import type { WorkflowOperation } from '../domain/claim-operation.ts';
import type { Row } from '../platform/db/entities.ts';
import { followingAccounts } from '../platform/db/following-accounts.ts';
import { hasPassed, passedTimes } from '../platform/db/has-passed.ts';
import type { Orm } from '../platform/db/orm.ts';
import { autocommitStatement, writeStatement } from '../platform/db/sql.ts';
import { IS_LEASE_OVER } from './claim.ts';

/**
 * A claim without a response whose process seems to have died. It is the caller's to start until the lease
 * expires.
 */
export type AbandonedClaim = Row<
  'idempotency_claim',
  'id' | 'partner_id' | 'mode' | 'resource_id' | 'card_id' | 'request_id'
> & {
  operation: WorkflowOperation;
  /** How often its work has been started, including this time. */
  attempts: number;
};

/**
 * Deletes claims after 31 days (docs/partners/idempotency.md promises 30) that have a response and no pending
 * card, transfer.
 * @returns how many, at most `limit`
 */
export async function pruneClaims(orm: Orm, limit: number): Promise<number> {
  return (await prune(orm, { limit })).length;
}

interface Taking {
  operations: readonly WorkflowOperation[];
  limit: number;
  leaseMs: number;
}

/** A claim is put off for this long at most. */
const LONGEST_PAUSE_MS = 3_600_000;

const isAbandoned = ({ operations }: Taking) =>
  sql`c.response_status IS NULL AND c.operation = ANY (${operations}) AND ${IS_LEASE_OVER}`;

/**
 * Leases up to `limit` abandoned claims: those that were never tried first, the others by when they were
 * tried last. Accounts take turns, so one account's backlog delays nobody else's, and another caller gets
 * other claims.
 */
// Written out, because it takes claims of all accounts in turn. The order of the accounts is random:
// in any fixed order, the last one would wait for all the others.
export const takeAbandonedClaims = writeStatement(
  (_, taking: Taking) => sql<AbandonedClaim>`
    WITH RECURSIVE ${followingAccounts({
      table: 'idempotency_claim',
      account: ['partner_id', 'mode'],
      isQueued: sql`response_status IS NULL`,
      after: sql`'', ''`,
    })}, due AS MATERIALIZED (
      SELECT d.id FROM following a CROSS JOIN ${passedTimes(LONGEST_PAUSE_MS)} CROSS JOIN LATERAL (
        SELECT c.id, c.sweep_attempts > 0 AS was_tried,
          row_number() OVER (ORDER BY c.sweep_after, c.id) AS turn
        FROM idempotency_claim c WHERE c.partner_id = a.partner_id AND c.mode = a.mode
          AND c.sweep_after BETWEEN time.earliest AND time.latest AND ${isAbandoned(taking)}
        ORDER BY c.sweep_after, c.id LIMIT ${taking.limit}) d
      ORDER BY d.was_tried, d.turn, random() LIMIT ${taking.limit}
    ), taken AS MATERIALIZED (
      SELECT c.id FROM idempotency_claim c WHERE c.id IN (SELECT id FROM due)
        AND ${hasPassed('c.sweep_after', LONGEST_PAUSE_MS)} AND ${isAbandoned(taking)}
      FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE idempotency_claim c
    SET sweep_after = now() + ${taking.leaseMs} * interval '1 millisecond',
      sweep_attempts = c.sweep_attempts + 1
    FROM taken WHERE c.id = taken.id
    RETURNING c.id, c.partner_id, c.mode, c.operation, c.resource_id, c.card_id, c.request_id,
      c.sweep_attempts AS attempts`,
  { acrossTenants: 'queue' },
);

/** Leaves a claim alone for this long, at most an hour, unless it has a response. */
export const putClaimOff = autocommitStatement(
  (_, { claimId, pauseMs }: { claimId: string; pauseMs: number }) => sql`
    UPDATE idempotency_claim SET sweep_after = now() + ${pauseMs} * interval '1 millisecond'
    WHERE id = ${claimId} AND response_status IS NULL`,
  { acrossTenants: 'queue' },
);

const prune = autocommitStatement(
  (_, { limit }: { limit: number }) => sql`
    DELETE FROM idempotency_claim WHERE id IN (
      SELECT id FROM idempotency_claim
      WHERE created_at < now() - interval '31 days' AND response_status IS NOT NULL
        AND NOT EXISTS (SELECT FROM card WHERE card.claim_id = idempotency_claim.id)
        AND NOT EXISTS (SELECT FROM card_transfer t WHERE t.claim_id = idempotency_claim.id)
      ORDER BY created_at LIMIT ${limit} FOR UPDATE SKIP LOCKED)
    RETURNING id`,
  { acrossTenants: 'queue' },
);

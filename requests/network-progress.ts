import { sql } from 'kysely';
import { autocommitStatement } from '../platform/db/sql.ts';
import type { NetworkAnswer } from './rules.ts';

/** That the card network is being asked, for so long that it has to be noted. */
export interface Asking {
  claimId: string;
  /** How long ago the request began. */
  sinceMs: number;
  /** How long it may take in all; null if there is no deadline. */
  deadlineMs: number | null;
}

/** What came of asking the card network once. */
export interface Asked extends Asking {
  answer: NetworkAnswer;
  /** Why there is no answer: a status and a code, never a body. Null if there is one. */
  problem: string | null;
  /** Whether {@link noteAsking} has counted the request already. */
  isCounted: boolean;
  /** In how long it is asked again, unless it has decided. */
  nextAskMs: number;
}

/**
 * Notes on the claim's row that the card network is being asked and has not answered yet, for GET
 * /operations.
 */
export const noteAsking = autocommitStatement(
  (_, { claimId, sinceMs, deadlineMs }: Asking) => sql`
    UPDATE idempotency_claim SET network_asked = network_asked + 1,
      network_last_asked_at = now() - ${sinceMs} * interval '1 millisecond', network_next_ask_at = NULL,
      network_deadline = created_at + ${deadlineMs} * interval '1 millisecond'
    WHERE id = ${claimId}`,
  { acrossTenants: 'id' },
);

/**
 * Notes on the claim's row what came of asking the card network, for GET /operations
 * (docs/partners/operations.md). At the deadline, it is asked in any case.
 */
export const noteAsked = autocommitStatement(
  (_, { claimId, sinceMs, answer, problem, isCounted, nextAskMs, deadlineMs }: Asked) => sql`
    UPDATE idempotency_claim c
    SET network_asked = c.network_asked + CASE WHEN ${isCounted}::boolean THEN 0 ELSE 1 END,
      network_last_answer = ${answer}, network_problem = ${problem},
      network_last_asked_at = now() - ${sinceMs} * interval '1 millisecond', network_deadline = d.deadline,
      network_next_ask_at = CASE WHEN d.next_ask_at > d.deadline AND d.deadline > now() THEN d.deadline ELSE d.next_ask_at END
    FROM (SELECT id, created_at + ${deadlineMs} * interval '1 millisecond' AS deadline,
        now() + ${nextAskMs} * interval '1 millisecond' AS next_ask_at
      FROM idempotency_claim WHERE id = ${claimId}) d
    WHERE c.id = d.id`,
  { acrossTenants: 'id' },
);

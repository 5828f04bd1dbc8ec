import { sql } from 'kysely';
import type { Orm } from '../../db/orm.ts';
import { autocommitStatement } from '../../db/sql.ts';
import type { NetworkAnswer } from '../../domain/operation.ts';

/** What came of asking the card network once. */
export interface Asked {
  claimId: string;
  answer: NetworkAnswer;
  /** In how long it is asked again, unless it has decided. */
  nextAskMs: number;
  /** How long it may take in all; null if there is no deadline. */
  deadlineMs: number | null;
}

/** Notes on the claim's row what came of asking the card network, for GET /operations (docs/partners/operations.md). */
export async function noteAsked(orm: Orm, asked: Asked): Promise<void> {
  await note(orm, asked);
}

// At the deadline, it is asked in any case.
const note = autocommitStatement(
  (_, { claimId, answer, nextAskMs, deadlineMs }: Asked) => sql`
    UPDATE idempotency_claim c SET network_asked = c.network_asked + 1, network_last_answer = ${answer},
      network_last_asked_at = now(), network_deadline = d.deadline,
      network_next_ask_at = CASE WHEN d.next_ask_at > d.deadline AND d.deadline > now() THEN d.deadline ELSE d.next_ask_at END
    FROM (SELECT id, created_at + ${deadlineMs} * interval '1 millisecond' AS deadline,
        now() + ${nextAskMs} * interval '1 millisecond' AS next_ask_at
      FROM idempotency_claim WHERE id = ${claimId}) d
    WHERE c.id = d.id`,
  { acrossTenants: 'id' },
);

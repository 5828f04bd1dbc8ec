import type { EntityManager } from '@mikro-orm/postgresql';
import { query } from '../../db/sql.ts';
import { UNSAFE_COMMIT } from '../../db/unsafe-commit.ts';
import type { DeliveryStatus } from '../../domain/event.ts';

/** One attempt to send an event, and how far the event has got by it. */
export interface Attempt {
  eventId: string;
  startedAt: Date;
  durationMs: number;
  httpStatus: number | null;
  /** A short code; null where it was delivered. */
  error: string | null;
  /** Of a failure, by sealAnswerStart. */
  answerStart: Buffer | null;
  /** `pending` where the event is to be set aside next. */
  status: DeliveryStatus;
  nextAttemptMs: number | null;
}

/**
 * Records attempts, at most one of each event, in one statement, for their workflows to hear of. What was delivered stays
 * delivered, whatever another attempt under way at the same time came to. A crash of PostgreSQL may forget it; the event
 * is then sent again.
 */
export async function recordAttempts(em: EntityManager, attempts: Attempt[]): Promise<void> {
  await query(em, RECORD, [
    attempts.map(({ eventId }) => eventId),
    attempts.map(({ startedAt }) => startedAt.toISOString()),
    attempts.map(({ durationMs }) => Math.round(durationMs)),
    attempts.map(({ httpStatus }) => httpStatus),
    attempts.map(({ error }) => error),
    attempts.map(({ answerStart }) => answerStart),
    attempts.map(({ status }) => status),
    attempts.map(({ nextAttemptMs }) => nextAttemptMs),
  ]);
}

// An event that arrives at its first attempt never has a workflow.
const RECORD = `
  WITH ${UNSAFE_COMMIT}, attempt AS (
    SELECT * FROM unnest($1::text[], $2::timestamptz[], $3::int[], $4::smallint[], $5::text[], $6::bytea[], $7::text[],
      $8::float8[]) a (event_id, started_at, duration_ms, http_status, error, answer_start, status, next_attempt_ms)
  ), counted AS (
    UPDATE delivery d SET attempt_count = d.attempt_count + 1, schedule_attempts = d.schedule_attempts + 1,
      status = CASE WHEN d.status = 'delivered' THEN d.status ELSE a.status END,
      next_attempt_at = CASE WHEN d.status <> 'delivered'
        THEN clock_timestamp() + a.next_attempt_ms * interval '1 millisecond' END,
      lease_expires_at = '-infinity',
      workflow = CASE WHEN a.status = 'pending' OR (d.workflow = 'none' AND a.status = 'delivered') THEN d.workflow
        ELSE 'untold' END
    FROM attempt a, unsafe_commit WHERE d.event_id = a.event_id
    RETURNING d.event_id, d.attempt_count
  )
  INSERT INTO delivery_attempt (event_id, number, started_at, duration_ms, delivered, http_status, error, answer_start)
  SELECT c.event_id, c.attempt_count, a.started_at, a.duration_ms, a.error IS NULL, a.http_status, a.error, a.answer_start
  FROM counted c JOIN attempt a ON a.event_id = c.event_id`;

import type { EntityManager } from '@mikro-orm/postgresql';
import { query } from '../db/sql.ts';
import { UNSAFE_COMMIT } from '../db/unsafe-commit.ts';
import type { DeliveryStatus } from '../domain/delivery-status.ts';

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
  /** `pending` where the relay is to try again, after `nextAttemptMs`. */
  status: DeliveryStatus;
  nextAttemptMs: number | null;
}

/**
 * Records attempts, at most one of each event, in one statement. What was delivered stays delivered, whatever another
 * attempt under way at the same time came to.
 * @param options.mayBeForgotten by a crash of PostgreSQL: for a relay, which would only send the event again.
 */
export async function recordAttempts(
  em: EntityManager,
  attempts: Attempt[],
  options: { mayBeForgotten: boolean },
): Promise<void> {
  await query(em, options.mayBeForgotten ? RECORD_SOON : RECORD, [
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

const record = (isSafe: boolean) => `
  WITH ${isSafe ? '' : `${UNSAFE_COMMIT}, `}attempt AS (
    SELECT * FROM unnest($1::text[], $2::timestamptz[], $3::int[], $4::smallint[], $5::text[], $6::bytea[], $7::text[],
      $8::float8[]) a (event_id, started_at, duration_ms, http_status, error, answer_start, status, next_attempt_ms)
  ), counted AS (
    UPDATE delivery d SET attempt_count = d.attempt_count + 1,
      status = CASE WHEN d.status = 'delivered' THEN d.status ELSE a.status END,
      next_attempt_at = clock_timestamp() + a.next_attempt_ms * interval '1 millisecond',
      lease_expires_at = coalesce(clock_timestamp() + a.next_attempt_ms * interval '1 millisecond', '-infinity')
    FROM attempt a${isSafe ? '' : ', unsafe_commit'} WHERE d.event_id = a.event_id
    RETURNING d.event_id, d.attempt_count
  )
  INSERT INTO delivery_attempt (event_id, number, started_at, duration_ms, delivered, http_status, error, answer_start)
  SELECT c.event_id, c.attempt_count, a.started_at, a.duration_ms, a.error IS NULL, a.http_status, a.error, a.answer_start
  FROM counted c JOIN attempt a ON a.event_id = c.event_id`;

const RECORD = record(true);
const RECORD_SOON = record(false);

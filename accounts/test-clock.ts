import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import type { AccountClock } from '../domain/account-clock.ts';
import { ApiError } from '../domain/api-error.ts';
import { type Reader, readStatement, writeStatement } from '../platform/db/sql.ts';
import type { KeyedRequest } from '../requests/claim.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { findReplay, type KeyedResponse, respondOnce, respondWith } from '../requests/respond-once.ts';
import { presentTestClock, type TestClockResource } from './resource.ts';

/** The most that a clock can be ahead of real time, in seconds: ten years. */
const MAX_OFFSET_SECONDS = 10 * 365 * 86_400;

/**
 * How often a clock can be advanced in an hour of real time, because each advance is kept for ever
 * (docs/partners/testing.md).
 */
const MAX_AN_HOUR = 1_000;
/** How long an advance waits for a host whose clock is behind PostgreSQL's. */
const MAX_WAIT_MS = 1_000;

/**
 * Advances the clock of an account's test mode (docs/partners/testing.md). It waits for the account's
 * transactions that are under way, and for no other account's (docs/decisions/sandbox-clock.md). What has
 * become due is found by the workers.
 * @throws ApiError `idempotency_conflict`, `rate_limited`; without an Idempotency-Key also `limit_exceeded`,
 * which is otherwise a stored response
 */
export async function advanceTestClock(
  context: CommandContext,
  request: KeyedRequest<'advance_test_clock'>,
  seconds: number,
): Promise<KeyedResponse> {
  const { partnerId } = request;
  let advancedAtMs = 0;
  const response = await respondOnce(context, request, async (tx) => {
    await lockAlone(tx, { partnerId });
    const replay = await findReplay({ tx, ring: context.ring }, request);
    if (replay !== null) return replay;
    const [recent] = await countRecent(tx, { partnerId });
    if (recent !== undefined && recent.count >= MAX_AN_HOUR) throw tooOften(recent.seconds_left);
    const [advanced] = await insertAdvance(tx, { partnerId, seconds });
    if (advanced === undefined) {
      throw new ApiError('limit_exceeded', {
        message:
          `Limit exceeded: the test clock can be at most ten years (${MAX_OFFSET_SECONDS} seconds) ahead of real time, and it can't ` +
          'go back. GET /test/clock shows how far it is.',
      });
    }
    advancedAtMs = Number(advanced.advanced_at_ms);
    return respondWith({ tx, ring: context.ring }, request, 200, await readTestClock(tx, partnerId));
  });
  // Until the millisecond has come, by this host's clock too, so that whatever follows the response is of the
  // new time.
  await sleep(Math.min(Math.max(advancedAtMs + 1 - Date.now(), 2), MAX_WAIT_MS));
  return response;
}

function tooOften(retryAfterSeconds: number): ApiError {
  return new ApiError('rate_limited', {
    message:
      `The test clock was advanced ${MAX_AN_HOUR} times in the last hour, which is the most. Retry after the number of seconds in ` +
      'Retry-After, and then advance it less often, by more.',
    retryAfterSeconds,
  });
}

const countRecent = readStatement(
  (_, { partnerId }: { partnerId: string }) => sql<{ count: number; seconds_left: number }>`
    SELECT count(*)::int AS count,
      ceil(extract(epoch FROM min(advanced_at) + interval '1 hour' - clock_timestamp()))::int AS seconds_left
    FROM test_clock_advance
    WHERE partner_id = ${partnerId} AND advanced_at > clock_timestamp() - interval '1 hour'`,
);

const lockAlone = writeStatement(
  (_, { partnerId }: { partnerId: string }) => sql`SELECT lock_test_clock_alone(${partnerId})`,
);

// The next millisecond: what was given an id before it was given the time before it.
const insertAdvance = writeStatement(
  (_, { partnerId, seconds }: { partnerId: string; seconds: number }) => sql<{ advanced_at_ms: string }>`
    INSERT INTO test_clock_advance (partner_id, advanced_at, seconds_before, offset_seconds, shows)
    SELECT ${partnerId}, at, ahead, ahead + ${seconds}::bigint,
      at + (ahead + ${seconds}::bigint) * interval '1 second'
    FROM (
      SELECT greatest(date_trunc('milliseconds', clock_timestamp()), max(c.advanced_at))
        + interval '1 millisecond' AS at,
        coalesce(max(c.offset_seconds), 0) AS ahead
      FROM (SELECT advanced_at, offset_seconds FROM test_clock_advance WHERE partner_id = ${partnerId}
        ORDER BY advanced_at DESC LIMIT 1) c
    ) next
    WHERE ahead + ${seconds}::bigint <= ${sql.lit(MAX_OFFSET_SECONDS)}
    RETURNING (extract(epoch FROM advanced_at) * 1000)::bigint AS advanced_at_ms`,
);

/** The clock of an account's test mode, as its partner sees it. */
export async function readTestClock(em: Reader, partnerId: string): Promise<TestClockResource> {
  const [row] = await selectClock(em, { partnerId });
  return presentTestClock(row?.clock ?? null, row?.is_advancing ?? false);
}

// Whatever the last advance made due: an event's next attempt, an authorization's expiry, what happens to a
// deposit, the notice that a key expires.
const selectClock = readStatement(
  (_, { partnerId }: { partnerId: string }) => sql<{ clock: AccountClock; is_advancing: boolean }>`
    SELECT read_test_clock(${partnerId}) AS clock,
      EXISTS (SELECT FROM delivery d WHERE d.partner_id = ${partnerId} AND d.mode = 'test'
        AND d.status = 'retrying'
        AND d.next_attempt_at <= last.shows)
      OR EXISTS (SELECT FROM delivery d WHERE d.partner_id = ${partnerId} AND d.mode = 'test'
        AND d.status = 'pending'
        AND d.next_attempt_at <= last.shows)
      OR EXISTS (SELECT FROM card_authorization z WHERE z.partner_id = ${partnerId} AND z.mode = 'test'
        AND z.status = 'pending' AND z.expires_at <= last.shows)
      OR EXISTS (SELECT FROM deposit t WHERE t.partner_id = ${partnerId} AND t.mode = 'test'
        AND t.due_at <= last.shows)
      OR EXISTS (SELECT FROM api_key k WHERE k.partner_id = ${partnerId} AND k.mode = 'test'
        AND k.expires_at IS NOT NULL
        AND k.revoked_at IS NULL AND k.expiry_announced_at IS NULL
        AND k.expires_at <= last.shows + interval '7 days')
        AS is_advancing
    FROM (SELECT max(shows) AS shows FROM test_clock_advance WHERE partner_id = ${partnerId}) last`,
);

/** The clock alone; null if it was never advanced. */
export async function readAccountClock(em: Reader, partnerId: string): Promise<AccountClock> {
  const [row] = await selectClockAlone(em, { partnerId });
  return row?.clock ?? null;
}

const selectClockAlone = readStatement(
  (_, { partnerId }: { partnerId: string }) => sql<{ clock: AccountClock }>`
    SELECT read_test_clock(${partnerId}) AS clock`,
);

import { sql } from 'kysely';
import { heldClock } from '../accounts/clock.ts';
import type { AccountClock } from '../domain/account-clock.ts';
import { ApiError } from '../domain/api-error.ts';
import type { Tenant } from '../domain/mode.ts';
import { type Transactor, writeStatement } from '../platform/db/sql.ts';
import { tokenBucket } from '../platform/db/token-bucket.ts';

/** How many events and replays a partner can ask for in each mode: one per second, in bursts of up to 60. */
const ALLOWANCE = tokenBucket('a.full_at', { size: 60, perSecond: 1 });

interface Allowance {
  wait_seconds: number;
  /** The account's, which the transaction holds. */
  clock: AccountClock;
}

/** Locks what the account has left of its allowance, until the end of the caller's transaction. */
export async function lockAllowance(tx: Transactor, { partnerId, mode }: Tenant): Promise<Allowance> {
  const [allowance] = await lock(tx, { partnerId, mode });
  if (allowance === undefined) throw new Error('an upsert has one row');
  return allowance;
}

// The clock comes before row locks.
const lock = writeStatement(
  (_, { partnerId, mode }: Tenant) => sql<Allowance>`
  WITH held AS MATERIALIZED (SELECT ${heldClock(partnerId, mode)} AS clock)
  INSERT INTO webhook_allowance AS a (partner_id, mode) SELECT ${partnerId}, ${mode} FROM held
  ON CONFLICT (partner_id, mode) DO UPDATE SET full_at = a.full_at
  RETURNING ${ALLOWANCE.waitSeconds} AS wait_seconds, (SELECT clock FROM held) AS clock`,
);

/** Takes one event, or one replay, off the allowance. @throws ApiError `rate_limited` */
export async function takeFromAllowance(
  tx: Transactor,
  { partnerId, mode }: Tenant,
  allowance: Allowance,
): Promise<void> {
  if (allowance.wait_seconds > 0) {
    throw new ApiError('rate_limited', {
      message:
        'Too many events or replays requested: the limit is one per second, in bursts of up to 60. Retry after the number of seconds in Retry-After.',
      retryAfterSeconds: allowance.wait_seconds,
    });
  }
  await takeOne(tx, { partnerId, mode });
}

const takeOne = writeStatement((db, { partnerId, mode }: Tenant) =>
  db
    .updateTable('webhook_allowance as a')
    .set({ full_at: ALLOWANCE.afterTaking(sql.lit(1)) })
    .where('a.partner_id', '=', partnerId)
    .where('a.mode', '=', mode),
);

import { type RawBuilder, sql } from 'kysely';
import { type AccountClock, LAST_MS } from '../domain/account-clock.ts';
import type { IdPrefix } from '../domain/ids.ts';
import type { Tenant } from '../domain/mode.ts';
import { type Transactor, writeStatement } from './sql.ts';

/**
 * For a `sql` template that writes: an account's clock, which then stays as it is until the transaction ends. It comes before row
 * locks (docs/decisions/one-order-of-locks.md).
 */
export const heldClock = (partnerId: unknown, mode: unknown): RawBuilder<AccountClock> =>
  sql<AccountClock>`CASE ${mode} WHEN 'test' THEN lock_test_clock(${partnerId}) END`;

/** What the account's clock says, which then stays so until the transaction ends. It comes before row locks, as {@link heldClock}. */
export async function holdClock(tx: Transactor, { partnerId, mode }: Tenant): Promise<AccountClock> {
  const [row] = await hold(tx, { partnerId, mode });
  return row?.clock ?? null;
}

const hold = writeStatement(
  (_, { partnerId, mode }: Tenant) =>
    sql<{ clock: AccountClock }>`SELECT ${heldClock(sql`${partnerId}::text`, sql`${mode}::text`)} AS clock`,
);

/** The day it is for an account, in UTC: the one that limits per day count in. */
export const accountToday = (partnerId: unknown, mode: unknown): RawBuilder<string> =>
  sql<string>`(account_now(${partnerId}, ${mode}) AT TIME ZONE 'UTC')::date`;

/**
 * The lowest id that something can have which an account made at a time of its clock, or later. Ids keep the real time, so a range
 * of the account's time is a range of ids. For a `sql` template, which evaluates it once.
 * @param at from {@link boundTime}; null: the lowest id of all
 */
export const firstId = (prefix: IdPrefix, { partnerId, mode }: Tenant, at: unknown): RawBuilder<string> =>
  sql<string>`(SELECT ${sql.lit(`${prefix}_`)} || id_time(greatest(real_time(${partnerId}, ${mode}, ${at}::timestamptz), 'epoch'))
    COLLATE "C")`;

/** A time that PostgreSQL and ids can express, the nearest to this one; null if it is undefined. */
export const boundTime = (at: Date | undefined): string | null =>
  at === undefined ? null : new Date(Math.min(Math.max(at.getTime(), 0), LAST_MS)).toISOString();

/**
 * How long after an advance what it made due begins strictly in the order of its due times, each kind waiting for the others.
 * Whatever is left then, because a receiver is slow, begins at once.
 */
export const IN_ORDER_FOR = sql`interval '8 seconds'`;

/** How long before its expiry a key is announced (docs/partners/keys-and-modes.md). */
export const KEY_ANNOUNCED_AHEAD = sql`interval '7 days'`;

type DueKind = 'attempt' | 'authorization' | 'deposit' | 'key';

/**
 * For a `sql` template: accounts with what time it is for each (`now`) and whose turn it is (docs/decisions/sandbox-clock.md). What its
 * clock showed after an advance just now is `in_order_until`; what was due by then begins in order, so only what is due up to
 * `others_due_at`, when the first thing of another kind is due. {@link isInTurn} is the condition.
 *
 * Whatever falls due by a sandbox clock is in here, and in `selectClock` of commands/accounts/test-clock.ts, which says whether a clock
 * is advancing. The statements that read from here are in commands/authorizations/expire-due.ts, commands/deposits/test-deposits.ts,
 * commands/accounts/expiring-keys.ts and commands/webhooks/retries.ts.
 * @param accounts a query of `partner_id` and `mode`
 */
export const accountsWithTurn = (kind: DueKind, accounts: RawBuilder<unknown>): RawBuilder<unknown> => sql`(
  SELECT a.*, CASE WHEN a.in_order_until = '-infinity' THEN 'infinity' ELSE coalesce(least(
      ${
        kind === 'attempt'
          ? sql`NULL`
          : sql`(SELECT o.next_attempt_at FROM delivery o WHERE o.partner_id = a.partner_id AND o.mode = a.mode
        AND o.mode = 'test' AND o.status = 'retrying' ORDER BY o.next_attempt_at LIMIT 1),
      (SELECT min(o.next_attempt_at) FROM delivery o WHERE o.partner_id = a.partner_id AND o.mode = a.mode AND o.status = 'pending')`
      },
      ${
        kind === 'authorization'
          ? sql`NULL`
          : sql`(SELECT o.expires_at FROM card_authorization o WHERE o.partner_id = a.partner_id AND o.mode = a.mode
        AND o.status = 'pending' ORDER BY o.expires_at, o.id LIMIT 1)`
      },
      ${
        kind === 'deposit'
          ? sql`NULL`
          : sql`(SELECT o.due_at FROM deposit o WHERE o.partner_id = a.partner_id AND o.mode = a.mode AND o.due_at IS NOT NULL
        ORDER BY o.due_at LIMIT 1)`
      },
      ${
        kind === 'key'
          ? sql`NULL`
          : sql`(SELECT o.expires_at - ${KEY_ANNOUNCED_AHEAD} FROM api_key o WHERE o.partner_id = a.partner_id AND o.mode = a.mode
        AND o.expires_at IS NOT NULL AND o.revoked_at IS NULL AND o.expiry_announced_at IS NULL ORDER BY o.expires_at LIMIT 1)`
      }), 'infinity') END AS others_due_at
  FROM (
    SELECT partner_id, mode, account_now(partner_id, mode) AS now,
      CASE WHEN mode = 'test' THEN coalesce((SELECT max(c.shows) FROM test_clock_advance c
        WHERE c.partner_id = f.partner_id AND c.advanced_at > clock_timestamp() - ${IN_ORDER_FOR}), '-infinity')
        ELSE '-infinity' END AS in_order_until
    FROM (${accounts}) f OFFSET 0) a
  OFFSET 0)`;

/**
 * Whether something may begin, as far as other kinds are concerned.
 * @param account the alias of {@link accountsWithTurn}
 */
export const isInTurn = (account: string, dueAt: RawBuilder<unknown>): RawBuilder<boolean> =>
  sql<boolean>`(${dueAt} <= ${sql.ref(`${account}.others_due_at`)} OR ${dueAt} > ${sql.ref(`${account}.in_order_until`)})`;

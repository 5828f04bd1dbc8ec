import { type RawBuilder, sql } from 'kysely';
import { type AccountClock, LAST_MS } from '../domain/account-clock.ts';
import type { IdPrefix } from '../domain/ids.ts';
import type { Tenant } from '../domain/mode.ts';
import { type Transactor, writeStatement } from '../platform/db/sql.ts';

/**
 * For a `sql` template that writes: an account's clock, which then stays as it is until the transaction ends.
 * It comes before row locks (docs/decisions/one-order-of-locks.md).
 */
export const heldClock = (partnerId: unknown, mode: unknown): RawBuilder<AccountClock> =>
  sql<AccountClock>`CASE ${mode} WHEN 'test' THEN lock_test_clock(${partnerId}) END`;

/**
 * What the account's clock says, which then stays so until the transaction ends. It comes before row locks,
 * as {@link heldClock}.
 */
export async function holdClock(tx: Transactor, { partnerId, mode }: Tenant): Promise<AccountClock> {
  const [row] = await hold(tx, { partnerId, mode });
  return row?.clock ?? null;
}

const hold = writeStatement(
  (_, { partnerId, mode }: Tenant) =>
    sql<{ clock: AccountClock }>`SELECT ${heldClock(sql`${partnerId}::text`, sql`${mode}::text`)} AS clock`,
);

/**
 * The day that limits per day count something in: today for the account, in UTC, or a later one that was
 * counted in before, by a transaction that began later. The caller has locked the account's usage.
 */
export const countedDay = (partnerId: unknown, mode: unknown): RawBuilder<string> =>
  sql<string>`greatest((account_now(${partnerId}, ${mode}) AT TIME ZONE 'UTC')::date,
    (SELECT loaded_on FROM account_usage WHERE partner_id = ${partnerId} AND mode = ${mode}))`;

/**
 * The lowest id that something can have which an account made at a time of its clock, or later. Ids keep the
 * real time, so a range of the account's time is a range of ids. For a `sql` template, which evaluates it
 * once.
 * @param at from {@link boundTime}; null: the lowest id of all
 */
export const firstId = (prefix: IdPrefix, { partnerId, mode }: Tenant, at: unknown): RawBuilder<string> =>
  sql<string>`(SELECT ${sql.lit(`${prefix}_`)} || id_time(greatest(real_time(${partnerId}, ${mode}, ${at}::timestamptz), 'epoch'))
    COLLATE "C")`;

/** A time that PostgreSQL and ids can express, the nearest to this one; null if it is undefined. */
export const boundTime = (at: Date | undefined): string | null =>
  at === undefined ? null : new Date(Math.min(Math.max(at.getTime(), 0), LAST_MS)).toISOString();

/** How long before its expiry a key is announced (docs/partners/keys-and-modes.md). */
export const KEY_ANNOUNCED_AHEAD = sql`interval '7 days'`;

/**
 * For a `sql` template: accounts with what time it is for each (`now`). Whatever falls due by a sandbox clock
 * reads it, and is in `selectClock` of accounts/test-clock.ts, which says whether a clock is advancing
 * (docs/decisions/sandbox-clock.md).
 * @param accounts a query of `partner_id` and `mode`
 */
export const accountsNow = (accounts: RawBuilder<unknown>): RawBuilder<unknown> =>
  sql`(SELECT partner_id, mode, account_now(partner_id, mode) AS now FROM (${accounts}) a OFFSET 0)`;

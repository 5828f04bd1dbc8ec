import type { EntityManager } from '@mikro-orm/postgresql';
import { query } from '../../db/sql.ts';
import { UNSAFE_COMMIT } from '../../db/unsafe-commit.ts';
import type { DeliveryStatus, EventType } from '../../domain/event.ts';
import type { Mode } from '../../domain/mode.ts';
import type { Tenant } from '../../domain/tenant.ts';

/** Workflows of an account at once; with one more every 62.5 ms it is at most 20 in any second, by all processes together. */
const MOST_AT_ONCE = 4;
const MORE_PER_SECOND = 16;
/** Accounts served in one turn. */
const ACCOUNTS = 8;
/** Longer than it takes to tell a workflow. */
const LEASE_SECONDS = 15;

/** How an event stands that its workflow has yet to hear of. */
export interface UntoldDelivery {
  event_id: string;
  partner_id: string;
  mode: Mode;
  type: EventType;
  status: Exclude<DeliveryStatus, 'pending' | 'no_endpoint'>;
  attempt_count: number;
  next_attempt_in_ms: number;
  /** Of the last attempt. */
  error: string | null;
}

/**
 * Leases events whose workflows have to hear how they stand: a few of each account in turn, oldest first, and of no
 * account more than its allowance, so that one whose events all fail keeps nobody else's waiting.
 * @param after the account to begin behind; null: the first one
 * @returns `last`: the account to go on behind; null where all of them have had their turn
 */
export async function takeUntold(
  em: EntityManager,
  after: Tenant | null,
): Promise<{ untold: UntoldDelivery[]; last: Tenant | null }> {
  const rows = await query<Nullable<UntoldDelivery> & Pick<UntoldDelivery, 'partner_id' | 'mode'>>(em, TAKE, [
    after?.partnerId ?? '',
    after?.mode ?? '',
  ]);
  const accounts = new Map(
    rows.map(({ partner_id, mode }) => [`${partner_id}/${mode}`, { partnerId: partner_id, mode }]),
  );
  return {
    untold: rows.filter((row): row is UntoldDelivery => row.event_id !== null),
    last: accounts.size < ACCOUNTS ? null : ([...accounts.values()].at(-1) ?? null),
  };
}

type Nullable<T> = { [K in keyof T]: T[K] | null };

/** Records that a workflow has heard. What has happened since then it has yet to hear. */
export async function markTold(em: EntityManager, told: UntoldDelivery): Promise<void> {
  const { event_id, status, attempt_count } = told;
  await query(
    em,
    `UPDATE delivery SET workflow = CASE WHEN status IN ('retrying', 'given_up') THEN 'told' ELSE 'none' END,
       lease_expires_at = '-infinity'
     WHERE event_id = $1 AND status = $2 AND attempt_count = $3`,
    [event_id, status, attempt_count],
  );
}

// The accounts are found by skipping through the index. The endpoint's row keeps the allowance, as one time at which the
// whole of it is there again, and is locked meanwhile: an account that another process serves is passed over. Where the
// endpoint is gone nothing new fails, so what is left needs no limit but that of the turn.
const TAKE = `
  WITH RECURSIVE ${UNSAFE_COMMIT}, following (partner_id, mode) AS (
    (SELECT partner_id, mode FROM delivery
     WHERE workflow = 'untold' AND status <> 'pending' AND (partner_id, mode) > ($1, $2)
     ORDER BY partner_id, mode LIMIT 1)
    UNION ALL
    SELECT further.* FROM following f CROSS JOIN LATERAL (
      SELECT d.partner_id, d.mode FROM delivery d
      WHERE d.workflow = 'untold' AND d.status <> 'pending' AND (d.partner_id, d.mode) > (f.partner_id, f.mode)
      ORDER BY d.partner_id, d.mode LIMIT 1) further
  ), account AS MATERIALIZED (
    SELECT partner_id, mode FROM following LIMIT ${ACCOUNTS}
  ), endpoint AS MATERIALIZED (
    SELECT w.partner_id, w.mode, ${MOST_AT_ONCE} - ceil(${MORE_PER_SECOND} *
      greatest(0, extract(epoch FROM greatest(w.workflows_full_at, clock_timestamp()) - clock_timestamp()))) AS allowance
    FROM webhook_endpoint w WHERE (w.partner_id, w.mode) IN (SELECT partner_id, mode FROM account)
    FOR NO KEY UPDATE SKIP LOCKED
  ), allowed AS (
    SELECT a.partner_id, a.mode, CASE
      WHEN EXISTS (SELECT FROM webhook_endpoint w WHERE w.partner_id = a.partner_id AND w.mode = a.mode)
        THEN greatest(0, coalesce(e.allowance, 0)) ELSE ${MOST_AT_ONCE} END AS allowance
    FROM account a LEFT JOIN endpoint e ON e.partner_id = a.partner_id AND e.mode = a.mode
  ), due AS MATERIALIZED (
    SELECT d.event_id FROM allowed a CROSS JOIN LATERAL (
      SELECT u.event_id FROM delivery u
      WHERE u.workflow = 'untold' AND u.status <> 'pending' AND u.partner_id = a.partner_id AND u.mode = a.mode
        AND u.lease_expires_at <= clock_timestamp()
      ORDER BY u.event_id LIMIT a.allowance::bigint FOR UPDATE SKIP LOCKED) d
  ), leased AS (
    UPDATE delivery d SET lease_expires_at = clock_timestamp() + interval '${LEASE_SECONDS} seconds'
    FROM due WHERE d.event_id = due.event_id
    RETURNING d.event_id, d.partner_id, d.mode, d.type, d.status, d.attempt_count, d.next_attempt_at
  ), spent AS (
    UPDATE webhook_endpoint w SET workflows_full_at = greatest(w.workflows_full_at, clock_timestamp()) +
      taken.count * interval '1 second' / ${MORE_PER_SECOND}
    FROM (SELECT partner_id, mode, count(*) FROM leased GROUP BY partner_id, mode) taken
    WHERE w.partner_id = taken.partner_id AND w.mode = taken.mode
  )
  SELECT a.partner_id, a.mode, l.event_id, l.type, l.status, l.attempt_count,
    greatest(0, extract(epoch FROM l.next_attempt_at - clock_timestamp()) * 1000)::float8 AS next_attempt_in_ms,
    (SELECT t.error FROM delivery_attempt t WHERE t.event_id = l.event_id AND t.number = l.attempt_count) AS error
  FROM unsafe_commit, account a LEFT JOIN leased l ON l.partner_id = a.partner_id AND l.mode = a.mode
  ORDER BY a.partner_id, a.mode, l.event_id`;

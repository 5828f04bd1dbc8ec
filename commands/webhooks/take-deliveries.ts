import type { EntityManager } from '@mikro-orm/postgresql';
import { query } from '../../db/sql.ts';
import { UNSAFE_COMMIT } from '../../db/unsafe-commit.ts';
import type { EventType } from '../../domain/event.ts';
import type { Mode } from '../../domain/mode.ts';

/** An event whose attempt is the caller's to make, until its lease ends. */
export interface TakenDelivery {
  event_id: string;
  partner_id: string;
  mode: Mode;
  type: EventType;
  /** Attempts since its schedule began. */
  schedule_attempts: number;
  body: string;
  /** Null where the account's endpoint is gone. */
  url: string | null;
  endpoint_status: 'enabled' | 'disabled' | null;
  standard_headers: boolean;
  secret: Buffer;
  previous_secret: Buffer | null;
}

/**
 * Leases pending events, oldest first within an account, as many as there are places for each and `limit` in all: one
 * account's backlog takes nobody else's place.
 * @param request.places of accounts that `free` does not name
 * @param request.after the account to begin behind, so that a full house is not always filled by the same; null: the first one.
 */
export function takeDeliveries(
  em: EntityManager,
  request: {
    /** How many more attempts of an account the caller has places for, by `<partnerId>/<mode>`. */
    free: Record<string, number>;
    places: number;
    limit: number;
    leaseMs: number;
    after: { partnerId: string; mode: Mode } | null;
  },
): Promise<TakenDelivery[]> {
  const { free, after } = request;
  return query<TakenDelivery>(em, TAKE, [
    after?.partnerId ?? '',
    after?.mode ?? '',
    JSON.stringify(free),
    request.places,
    request.limit,
    request.leaseMs,
  ]);
}

// The accounts that have pending events are found by skipping through the index, not by reading the events.
const TAKE = `
  WITH RECURSIVE ${UNSAFE_COMMIT}, account (partner_id, mode) AS (
    (SELECT partner_id, mode FROM delivery WHERE status = 'pending' AND (partner_id, mode) > ($1, $2)
     ORDER BY partner_id, mode LIMIT 1)
    UNION ALL
    SELECT following.* FROM account a CROSS JOIN LATERAL (
      SELECT d.partner_id, d.mode FROM delivery d
      WHERE d.status = 'pending' AND (d.partner_id, d.mode) > (a.partner_id, a.mode)
      ORDER BY d.partner_id, d.mode LIMIT 1) following
  ), due AS MATERIALIZED (
    SELECT d.event_id
    FROM account a
      CROSS JOIN LATERAL (
        SELECT p.event_id FROM delivery p
        WHERE p.status = 'pending' AND p.partner_id = a.partner_id AND p.mode = a.mode
          AND p.lease_expires_at <= clock_timestamp()
        ORDER BY p.event_id LIMIT coalesce(($3::jsonb ->> (a.partner_id || '/' || a.mode))::int, $4) FOR UPDATE SKIP LOCKED) d
    LIMIT $5
  ), leased AS (
    UPDATE delivery d SET lease_expires_at = clock_timestamp() + $6 * interval '1 millisecond'
    FROM due WHERE d.event_id = due.event_id
    RETURNING d.event_id, d.partner_id, d.mode, d.schedule_attempts
  )
  SELECT l.event_id, l.partner_id, l.mode, l.schedule_attempts, e.type, e.body, w.url, w.status AS endpoint_status, w.standard_headers, w.secret,
    CASE WHEN w.previous_secret_expires_at > now() THEN w.previous_secret END AS previous_secret
  FROM unsafe_commit, leased l JOIN event e ON e.id = l.event_id
    LEFT JOIN webhook_endpoint w ON w.partner_id = l.partner_id AND w.mode = l.mode
  ORDER BY l.partner_id, l.mode, l.event_id`;

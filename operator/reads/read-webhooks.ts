import { eventIdsFrom } from '../../db/event-ids.ts';
import type { Orm } from '../../db/orm.ts';
import { query } from '../../db/sql.ts';
import type { DeliveryStatus } from '../../domain/delivery-status.ts';
import type { EventType } from '../../domain/event-type.ts';
import type { Mode } from '../../domain/mode.ts';

/** An event and how far it got, as operators see it; what is in it is left out, since that can be personal. */
export interface WebhookResource {
  id: string;
  object: 'event';
  partner_id: string;
  mode: Mode;
  type: EventType;
  status: DeliveryStatus;
  attempt_count: number;
  next_attempt_at: string | null;
  /** Of the last attempt. */
  last_error: string | null;
  created: string;
}

export interface WebhookFilter {
  status: DeliveryStatus | null;
  partnerId: string | null;
  since: Date | null;
  limit: number;
}

/** Newest first. */
export async function readWebhooks(orm: Orm, filter: WebhookFilter): Promise<WebhookResource[]> {
  const values: unknown[] = [filter.limit];
  const bind = (value: unknown) => `$${values.push(value)}`;
  const filters: string[] = [];
  // In the text, so that the partial index of what waits can be used; it is one of our own words.
  if (filter.status !== null) filters.push(`d.status = '${filter.status}'`);
  if (filter.partnerId !== null) filters.push(`d.partner_id = ${bind(filter.partnerId)}`);
  if (filter.since !== null) {
    const id = eventIdsFrom(filter.since);
    filters.push(`d.event_id >= ${bind(id)} AND e.created_at >= ${bind(filter.since)}`);
  }
  const rows = await query<WebhookRow>(
    orm.em.fork(),
    `SELECT ${WEBHOOK_COLUMNS} FROM delivery d JOIN event e ON e.id = d.event_id
     ${filters.length === 0 ? '' : `WHERE ${filters.join(' AND ')}`}
     ORDER BY d.event_id DESC LIMIT $1`,
    values,
  );
  return rows.map(presentWebhook);
}

export interface WebhookRow {
  id: string;
  partner_id: string;
  mode: Mode;
  type: EventType;
  status: DeliveryStatus;
  attempt_count: number;
  next_attempt_at: Date | string | null;
  last_error: string | null;
  created_at: Date | string;
}

/** Of tables `event` e and `delivery` d. */
export const WEBHOOK_COLUMNS = `e.id, e.partner_id, e.mode, e.type, d.status, d.attempt_count, d.next_attempt_at, e.created_at,
  (SELECT a.error FROM delivery_attempt a WHERE a.event_id = d.event_id AND a.number = d.attempt_count) AS last_error`;

export function presentWebhook(row: WebhookRow): WebhookResource {
  return {
    id: row.id,
    object: 'event',
    partner_id: row.partner_id,
    mode: row.mode,
    type: row.type,
    status: row.status,
    attempt_count: row.attempt_count,
    next_attempt_at: row.next_attempt_at === null ? null : new Date(row.next_attempt_at).toISOString(),
    last_error: row.last_error,
    created: new Date(row.created_at).toISOString(),
  };
}

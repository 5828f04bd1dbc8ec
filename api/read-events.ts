import { eventIdsFrom, eventIdsUntil } from '../db/event-ids.ts';
import type { Orm } from '../db/orm.ts';
import type { Tenant } from '../db/tenant.ts';
import { tenantQuery } from '../db/tenant-query.ts';
import { ApiError } from '../domain/api-error.ts';
import type { DeliveryStatus } from '../domain/delivery-status.ts';
import {
  EVENTS_KEPT_DAYS,
  type EventResource,
  type EventRow,
  presentEvent,
} from '../domain/event-resource.ts';
import { isId } from '../domain/ids.ts';

const KEPT_MS = EVENTS_KEPT_DAYS * 24 * 3_600_000;

/** @throws ApiError `event_not_found`, for an id of another shape as well. */
export async function readEvent(orm: Orm, tenant: Tenant, eventId: string): Promise<EventResource> {
  const [row] = isId('evt', eventId)
    ? await tenantQuery<EventRow>(orm.em.fork(), tenant, ONE, [eventId, new Date(Date.now() - KEPT_MS)])
    : [];
  if (row === undefined) throw new ApiError('event_not_found');
  return presentEvent(row);
}

export interface EventPage {
  limit: number;
  startingAfter?: string | undefined;
  type?: string | undefined;
  status?: DeliveryStatus | undefined;
  from?: Date | undefined;
  until?: Date | undefined;
}

/**
 * Up to `limit` + 1 events of the last 30 days, newest first, by key.
 * @throws ApiError `validation_failed` where `startingAfter` is no event of the tenant.
 */
export async function readEventPage(orm: Orm, tenant: Tenant, page: EventPage): Promise<EventResource[]> {
  const keptFromMs = Date.now() - KEPT_MS;
  const fromMs = Math.max(page.from?.getTime() ?? keptFromMs, keptFromMs);
  const values: unknown[] = [page.limit + 1, eventIdsFrom(new Date(fromMs)), new Date(fromMs)];
  const bind = (value: unknown) => `$${values.push(value) + 2}`;
  const { side, status } = drivingSide(page.status);
  const after = page.startingAfter === undefined ? undefined : bind(page.startingAfter);
  const filters = [
    `${side} >= $4 AND e.created_at >= $5`,
    ...(after === undefined ? [] : [`${side} < ${after}`]),
    ...(page.type === undefined ? [] : [`e.type = ${bind(page.type)}`]),
    ...status,
  ];
  if (page.until !== undefined) {
    // Before the beginning of what is kept there is nothing, however long before.
    const untilMs = Math.max(page.until.getTime(), fromMs - 1);
    const idsEnd = bind(eventIdsUntil(new Date(untilMs)));
    filters.push(`${side} < ${idsEnd} AND e.created_at <= ${bind(new Date(untilMs))}`);
  }
  const owner = side.slice(0, 1);
  const rows = await tenantQuery<EventRow & { known: boolean }>(
    orm.em.fork(),
    tenant,
    `SELECT k.known, page.id, page.body, page.status, page.next_attempt_at, made.attempts
     FROM (SELECT ${after === undefined ? 'true' : KNOWN(after)} AS known) k
     LEFT JOIN (
       SELECT e.id, e.body, d.status, d.next_attempt_at FROM event e JOIN delivery d ON d.event_id = e.id
       WHERE ${owner}.partner_id = $1 AND ${owner}.mode = $2 AND ${filters.join(' AND ')}
       ORDER BY ${side} DESC LIMIT $3
     ) page ON true
     ${ATTEMPTS}
     ORDER BY page.id DESC`,
    values,
  );
  if (rows[0]?.known === false)
    throw ApiError.ofField('starting_after', 'starting_after is not the id of an event');
  return rows.filter((row) => row.id !== null).map(presentEvent);
}

/**
 * Which table's index is walked. All but what was delivered has partial indexes of its own; for them the condition has to
 * be in the statement's text, and comes from our own list. What was delivered is nearly everything there is.
 */
function drivingSide(status: DeliveryStatus | undefined): { side: string; status: string[] } {
  if (status === undefined) return { side: 'e.id', status: [] };
  return { side: status === 'delivered' ? 'e.id' : 'd.event_id', status: [`d.status = '${status}'`] };
}

const ATTEMPTS = `LEFT JOIN LATERAL (
       SELECT json_agg(json_build_object('number', a.number, 'delivered', a.delivered, 'http_status', a.http_status,
         'started_at', a.started_at, 'duration_ms', a.duration_ms, 'error', a.error) ORDER BY a.number) AS attempts
       FROM delivery_attempt a WHERE a.event_id = page.id
     ) made ON true`;

const ONE = `
  SELECT page.id, page.body, page.status, page.next_attempt_at, made.attempts FROM (
    SELECT e.id, e.body, d.status, d.next_attempt_at FROM event e JOIN delivery d ON d.event_id = e.id
    WHERE e.partner_id = $1 AND e.mode = $2 AND e.id = $3 AND e.created_at >= $4
  ) page ${ATTEMPTS}`;

const KNOWN = (after: string) =>
  `EXISTS (SELECT FROM event WHERE partner_id = $1 AND mode = $2 AND id = ${after})`;

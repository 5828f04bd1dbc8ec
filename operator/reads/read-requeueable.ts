import { lowestId } from '../../crypto/new-id.ts';
import type { Orm } from '../../db/orm.ts';
import { query } from '../../db/sql.ts';
import type { DeliveryStatus } from '../../domain/event.ts';

/** Which of an account's events to send again. */
export interface Requeueable {
  partnerId: string;
  statuses: readonly DeliveryStatus[];
  since: Date | null;
  /** What came later was not counted, and is left alone. */
  until: Date;
}

/** How many there are by status; `waiting` is what has no enabled endpoint to go to. */
export async function countRequeueable(
  orm: Orm,
  wanted: Requeueable,
): Promise<{ byStatus: Partial<Record<DeliveryStatus, number>>; waiting: number }> {
  const rows = await query<{ status: DeliveryStatus; has_endpoint: boolean; count: number }>(
    orm.em.fork(),
    `SELECT d.status, ${HAS_ENDPOINT} AS has_endpoint, count(*)::int AS count
     ${from(wanted)} GROUP BY 1, 2 ORDER BY 1`,
    [wanted.partnerId, ...bounds(wanted)],
  );
  const going = rows.filter((row) => row.has_endpoint);
  return {
    byStatus: Object.fromEntries(going.map(({ status, count }) => [status, count])),
    waiting: rows.reduce((sum, row) => sum + (row.has_endpoint ? 0 : row.count), 0),
  };
}

/** The ids of the next of those that have an enabled endpoint, oldest first, by key. */
export async function readRequeueable(
  orm: Orm,
  wanted: Requeueable,
  after: string,
  limit: number,
): Promise<string[]> {
  const rows = await query<{ id: string }>(
    orm.em.fork(),
    `SELECT e.id ${from(wanted)} AND d.event_id > $4 AND ${HAS_ENDPOINT} ORDER BY d.event_id LIMIT $5`,
    [wanted.partnerId, ...bounds(wanted), after, limit],
  );
  return rows.map(({ id }) => id);
}

const HAS_ENDPOINT = `EXISTS (SELECT FROM webhook_endpoint w
  WHERE w.partner_id = d.partner_id AND w.mode = d.mode AND w.status = 'enabled')`;

// The statuses are in the text, so that the partial index of what waits can be used; they are our own words.
const from = ({ statuses }: Requeueable) => `
  FROM delivery d JOIN event e ON e.id = d.event_id
  WHERE d.partner_id = $1 AND d.status IN (${statuses.map((status) => `'${status}'`).join(', ')})
    AND d.event_id >= $2 AND d.event_id < $3`;

function bounds({ since, until }: Requeueable): [begin: string, end: string] {
  return [lowestId('evt', since ?? new Date(0)), lowestId('evt', until)];
}

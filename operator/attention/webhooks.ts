import { sql } from 'kysely';
import type { Orm } from '../../db/orm.ts';
import { readStatement } from '../../db/sql.ts';
import type { AttentionItem } from './attention-item.ts';

/** If an account has more than this, they are one line, with the command for all of them. */
const MOST_SINGLE = 20;

/** Events that were given up: one item each, or one for an account that has many. */
export async function readGivenUp(orm: Orm): Promise<AttentionItem[]> {
  const rows = await givenUp(orm.em.fork(), { mostSingle: MOST_SINGLE });
  return rows.map(({ id, partner_id, count, error, since }) => ({
    kind: 'webhook',
    id: id ?? partner_id,
    since: new Date(since).toISOString(),
    reason:
      id === null
        ? `${count} events were given up; the first with: ${error}`
        : `the event was given up: ${error}`,
    command: `npm run operator -- webhook requeue ${id ?? `--partner ${partner_id}`}`,
  }));
}

interface GivenUpRow {
  /** Null for an item that stands for all of the account's events. */
  id: string | null;
  partner_id: string;
  count: number;
  error: string | null;
  since: string;
}

const givenUp = readStatement(
  (_, { mostSingle }: { mostSingle: number }) => sql<GivenUpRow>`
  WITH account AS (
    SELECT partner_id, count(*)::int AS count, min(event_id) AS first FROM delivery WHERE status = 'given_up'
    GROUP BY partner_id
  ), item AS (
    SELECT d.event_id AS id, d.event_id, a.partner_id, a.count FROM account a
      JOIN delivery d ON d.status = 'given_up' AND d.partner_id = a.partner_id WHERE a.count <= ${mostSingle}
    UNION ALL
    SELECT NULL, a.first, a.partner_id, a.count FROM account a WHERE a.count > ${mostSingle}
  )
  SELECT i.id, i.partner_id, i.count, last.error, coalesce(last.started_at, e.created_at) AS since
  FROM item i JOIN event e ON e.id = i.event_id
    LEFT JOIN LATERAL (SELECT error, started_at FROM delivery_attempt a WHERE a.event_id = i.event_id
      ORDER BY number DESC LIMIT 1) last ON true`,
);

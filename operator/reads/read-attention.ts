import type { Orm } from '../../db/orm.ts';
import { query } from '../../db/sql.ts';

/** Something that waits for a person, and the command that settles it. */
export interface AttentionItem {
  kind: 'card_issuance';
  id: string;
  since: string;
  reason: string;
  command: string;
}

/** Longest waiting first. @param deadlineMs how long a network may take for an issuance */
export async function readAttention(orm: Orm, deadlineMs: number): Promise<AttentionItem[]> {
  const rows = await query<{ id: string; flagged: boolean; since: string }>(
    orm.em.fork(),
    `SELECT id, overdue_since IS NOT NULL AS flagged,
       coalesce(overdue_since, created_at + $1 * interval '1 millisecond') AS since
     FROM card
     WHERE status = 'funding_pending'
       AND (overdue_since IS NOT NULL OR created_at < now() - $1 * interval '1 millisecond')
     ORDER BY since, id`,
    [deadlineMs],
  );
  return rows.map(({ id, flagged, since }) => ({
    kind: 'card_issuance',
    id,
    since: new Date(since).toISOString(),
    reason: flagged ? OVERDUE : UNNOTICED,
    command: `npm run operator -- card resolve ${id} --issued|--failed --reason R`,
  }));
}

const OVERDUE = 'the network has not said whether it issued the card';
const UNNOTICED = 'past its deadline, unnoticed by its workflow: see that a worker runs';

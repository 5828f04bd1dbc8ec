import type { Orm } from '../../db/orm.ts';
import { query } from '../../db/sql.ts';
import { readGivenUp } from './read-given-up.ts';
import { readWaitingStatusChanges } from './read-waiting-status-changes.ts';

/** Something that waits for a person, and the command that settles it. */
export interface AttentionItem {
  kind: 'card_issuance' | 'card_topup' | 'card_status_change' | 'webhook';
  id: string;
  since: string;
  reason: string;
  command: string;
}

/** How long a network may take. */
export interface Deadlines {
  issuanceDeadlineMs: number;
  topUpDeadlineMs: number;
}

/** Longest waiting first. */
export async function readAttention(orm: Orm, deadlines: Deadlines): Promise<AttentionItem[]> {
  const found = await Promise.all([
    readOverdue(orm, ISSUANCES, deadlines.issuanceDeadlineMs),
    readOverdue(orm, TOP_UPS, deadlines.topUpDeadlineMs),
    readWaitingStatusChanges(orm),
    readGivenUp(orm),
  ]);
  return found.flat().sort((a, b) => (`${a.since} ${a.id}` < `${b.since} ${b.id}` ? -1 : 1));
}

/** Rows that wait for the network. */
interface PendingRows {
  kind: AttentionItem['kind'];
  table: 'card' | 'topup';
  pending: string;
  reason: string;
  command(id: string): string;
}

const ISSUANCES: PendingRows = {
  kind: 'card_issuance',
  table: 'card',
  pending: 'funding_pending',
  reason: 'the network has not said whether it issued the card',
  command: (id) => `npm run operator -- card resolve ${id} --issued|--failed --reason R`,
};
const TOP_UPS: PendingRows = {
  kind: 'card_topup',
  table: 'topup',
  pending: 'pending',
  reason: 'the network has not said whether it loaded the card',
  command: (id) => `npm run operator -- topup resolve ${id} --succeeded|--failed --reason R`,
};
const UNNOTICED = 'past its deadline, unnoticed by its workflow: see that a worker runs';

async function readOverdue(
  orm: Orm,
  { kind, table, pending, reason, command }: PendingRows,
  deadlineMs: number,
): Promise<AttentionItem[]> {
  const rows = await query<{ id: string; flagged: boolean; since: string }>(
    orm.em.fork(),
    `SELECT id, overdue_since IS NOT NULL AS flagged,
       coalesce(overdue_since, created_at + $1 * interval '1 millisecond') AS since
     FROM ${table}
     WHERE status = '${pending}'
       AND (overdue_since IS NOT NULL OR created_at < now() - $1 * interval '1 millisecond')`,
    [deadlineMs],
  );
  return rows.map(({ id, flagged, since }) => ({
    kind,
    id,
    since: new Date(since).toISOString(),
    reason: flagged ? reason : UNNOTICED,
    command: command(id),
  }));
}

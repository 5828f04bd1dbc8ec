import { isoTime } from '../domain/iso-time.ts';
import type { Orm } from '../platform/db/orm.ts';
import { readStatement } from '../platform/db/sql.ts';
import type { NetworkAnswer } from '../requests/rules.ts';
import type { DecidedTable } from './decision.ts';

/** What an undecided issuance or transfer is waiting for. */
interface Waiting {
  /** By the configuration, which may have changed since the operation began. */
  deadline: string;
  asked: number | null;
  last_answer: NetworkAnswer | null;
  /** Why there was no answer. */
  network_problem: string | null;
  last_asked_at: string | null;
  next_poll_at: string | null;
}

/**
 * From the claim's row, as GET /operations has it: when something is stuck, no worker may be there to ask.
 */
export async function waitingFor(
  orm: Orm,
  table: DecidedTable,
  { id, created }: { id: string; created: string },
  deadlineMs: number,
): Promise<Waiting> {
  const [row] = await PROGRESS[table](orm.em.fork(), { id });
  return {
    deadline: new Date(Date.parse(created) + deadlineMs).toISOString(),
    asked: row?.network_asked ?? null,
    last_answer: row?.network_last_answer ?? null,
    network_problem: row?.network_problem ?? null,
    last_asked_at: isoTime(row?.network_last_asked_at ?? null),
    next_poll_at: isoTime(row?.network_next_ask_at ?? null),
  };
}

const progressIn = (table: DecidedTable) =>
  readStatement(
    (db, { id }: { id: string }) =>
      db
        .selectFrom('idempotency_claim')
        .select([
          'network_asked',
          'network_last_answer',
          'network_problem',
          'network_last_asked_at',
          'network_next_ask_at',
        ])
        .where('id', '=', db.selectFrom(table).select('claim_id').where('id', '=', id)),
    { acrossTenants: 'operator' },
  );

const PROGRESS = { card: progressIn('card'), card_transfer: progressIn('card_transfer') };

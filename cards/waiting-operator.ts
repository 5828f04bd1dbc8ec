import type { Session } from '../operator/session.ts';
import { networkProblem } from '../platform/db/columns.ts';
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

export async function waitingFor(
  session: Session,
  table: DecidedTable,
  { id, created, workflow_id }: { id: string; created: string; workflow_id: string },
  deadlineMs: number,
): Promise<Waiting> {
  const state = await session.operationState(workflow_id);
  const [row] = await PROBLEMS[table]((await session.orm()).em.fork(), { id });
  return {
    deadline: new Date(Date.parse(created) + deadlineMs).toISOString(),
    asked: state?.asked ?? null,
    // The word of GET /operations.
    last_answer: state?.lastAnswer === 'accepted' ? 'pending' : (state?.lastAnswer ?? null),
    network_problem: row?.network_problem ?? null,
    last_asked_at: state?.lastAskedAt ?? null,
    next_poll_at: state?.nextAskAt ?? null,
  };
}

const problemIn = (table: DecidedTable) =>
  readStatement(
    (db, { id }: { id: string }) => db.selectFrom(table).select(networkProblem(table)).where('id', '=', id),
    { acrossTenants: 'operator' },
  );

const PROBLEMS = { card: problemIn('card'), card_transfer: problemIn('card_transfer') };

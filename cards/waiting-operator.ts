import type { Session } from '../operator/session.ts';
import type { NetworkAnswer } from '../requests/rules.ts';
import type { DecidedTable } from './decision.ts';
import { readNetworkProblem } from './operation-operator-reads.ts';

/** What an undecided issuance or top-up is waiting for. */
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
  return {
    deadline: new Date(Date.parse(created) + deadlineMs).toISOString(),
    asked: state?.asked ?? null,
    // The word of GET /operations.
    last_answer: state?.lastAnswer === 'accepted' ? 'pending' : (state?.lastAnswer ?? null),
    network_problem: await readNetworkProblem(await session.orm(), table, id),
    last_asked_at: state?.lastAskedAt ?? null,
    next_poll_at: state?.nextAskAt ?? null,
  };
}

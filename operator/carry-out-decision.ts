import { setTimeout as sleep } from 'node:timers/promises';
import type { Operator } from '../commands/operator-context.ts';
import { Refusal } from '../commands/refusal.ts';
import type { ClaimedWorkflow } from '../workflows/client/claimed-workflow.ts';
import { type Decision, resolveOperation } from '../workflows/client/resolve-operation.ts';
import { readWorkflowStatus } from '../workflows/client/workflow-status.ts';
import type { Session } from './session.ts';

const TEMPORAL_TIMEOUT_MS = 5_000;
const POLL_MS = 200;
const ENDED = ['completed', 'failed', 'cancelled', 'terminated', 'timed_out', 'not_found'];

/** A card or top-up as operators see it. */
interface Pending {
  id: string;
  partner_id: string;
  mode: ClaimedWorkflow['mode'];
  status: string;
  workflow_id: string;
}

export interface DecisionByOperator<Resource extends Pending> {
  /** What it is called on the command line. */
  noun: 'card' | 'topup';
  before: Resource;
  claim: Pick<ClaimedWorkflow, 'claimId' | 'cardId'>;
  decided: Decision;
  /** Records the decision. @throws Refusal where it can't be made */
  record(operator: Operator, workflowEnded: boolean): Promise<void>;
  /** How it stands; one that a refusal in the same call has left nothing of is shown as it would be. */
  read(): Promise<Resource>;
}

/**
 * Records what an operator decides about an operation whose network stays silent, hands it to its workflow, and waits
 * until it is carried out.
 * @throws Refusal where it is not past its deadline, takes longer than `waitMs`, or ended otherwise meanwhile.
 */
export async function carryOutDecision<Resource extends Pending>(
  session: Session,
  waitMs: number,
  { noun, before, claim, decided, record, read }: DecisionByOperator<Resource>,
): Promise<Resource> {
  const { id, partner_id: partnerId, mode } = before;
  const client = session.temporal();
  const inTime = <T>(call: () => Promise<T>) => client.withDeadline(Date.now() + TEMPORAL_TIMEOUT_MS, call);
  const status = await inTime(() => readWorkflowStatus(client, before.workflow_id));
  await record(await session.operator(), ENDED.includes(status));
  const { taskQueue } = session;
  await inTime(() => resolveOperation(client, { ...claim, partnerId, mode, taskQueue }, decided));
  for (const giveUpAt = Date.now() + waitMs; Date.now() < giveUpAt; await sleep(POLL_MS)) {
    const now = await read();
    if (['funding_pending', 'pending'].includes(now.status)) continue;
    if ((now.status === 'failed') === (decided.decision.outcome === 'failed')) return now;
    // What the network says goes before what an operator thinks.
    throw new Refusal(
      `The network has answered meanwhile, and ${id} is ${now.status}: see "operator ${noun} show ${id}".`,
    );
  }
  throw new Refusal(
    `The decision is recorded and handed over, and ${id} is still pending: see that a worker runs, and look again ` +
      `with "operator ${noun} show ${id}".`,
  );
}

import { setTimeout as sleep } from 'node:timers/promises';
import type { Operator } from '../commands/accounts/operator-context.ts';
import { type DecidedTable, readDecision } from '../commands/funding/decision.ts';
import { Refusal } from '../commands/idempotency/refusal.ts';
import type { WhyNot } from '../domain/decision.ts';
import type { ClaimedWorkflow } from '../temporal/claimed-workflow.ts';
import { type Decision, resolveOperation } from '../temporal/resolve-operation.ts';
import { readWorkflowStatus } from '../temporal/workflow-status.ts';
import type { Session } from './session.ts';

const TEMPORAL_TIMEOUT_MS = 5_000;
const POLL_MS = 200;

/** A card or top-up as operators see it. */
interface Pending {
  id: string;
  partner_id: string;
  mode: ClaimedWorkflow['mode'];
  status: string;
  workflow_id: string;
}

export interface DecisionByOperator<Resource extends Pending> {
  /** What it is called on the command line, and its table. */
  noun: DecidedTable;
  before: Resource;
  claim: Pick<ClaimedWorkflow, 'claimId' | 'cardId'>;
  decided: Decision;
  /** Records the decision. @throws Refusal where it can't be made */
  record(operator: Operator): Promise<void>;
  /** How it stands; one that a refusal in the same call has left nothing of is shown as it would be. */
  read(): Promise<Resource>;
}

/**
 * Records what an operator decides about an operation whose network stays silent, hands it to its workflow, and waits
 * until it is carried out.
 * @throws Refusal where it is not past its deadline, may not be carried out, takes longer than `waitMs`, or ended
 * otherwise meanwhile.
 */
export async function carryOutDecision<Resource extends Pending>(
  session: Session,
  waitMs: number,
  { noun, before, claim, decided, record, read }: DecisionByOperator<Resource>,
): Promise<Resource> {
  const { id, partner_id: partnerId, mode } = before;
  const client = await session.temporal();
  const inTime = <T>(call: () => Promise<T>) => client.withDeadline(Date.now() + TEMPORAL_TIMEOUT_MS, call);
  // What could not be handed over is not recorded either.
  await inTime(() => readWorkflowStatus(client, before.workflow_id));
  await record(await session.operator());
  const { taskQueue } = session;
  await inTime(() => resolveOperation(client, { ...claim, partnerId, mode, taskQueue }, decided));
  return untilCarriedOut(session, waitMs, noun, id, async () => {
    const now = await read();
    if (['funding_pending', 'pending'].includes(now.status)) return null;
    if ((now.status === 'failed') === (decided.decision.outcome === 'failed')) return now;
    // What the network says goes before what an operator thinks.
    throw new Refusal(
      `The network answered in the meantime, or somebody else decided otherwise: ${id} is ${now.status}. ` +
        `See "operator ${noun} show ${id}".`,
    );
  });
}

/**
 * Waits for what a worker makes of a recorded decision.
 * @param done what to return; null while it is not carried out
 * @throws Refusal where it may not be, or takes longer than `waitMs`.
 */
export async function untilCarriedOut<Resource>(
  session: Session,
  waitMs: number,
  noun: DecidedTable,
  id: string,
  done: () => Promise<Resource | null>,
): Promise<Resource> {
  const orm = await session.orm();
  for (const giveUpAt = Date.now() + waitMs; Date.now() < giveUpAt; await sleep(POLL_MS)) {
    const resource = await done();
    if (resource !== null) return resource;
    const decision = await readDecision(orm.em.fork(), noun, id);
    if (decision?.refused !== undefined) throw new Refusal(`${id}: ${NOT_CARRIED_OUT[decision.refused]}`);
  }
  throw new Refusal(
    `The decision is recorded and was passed to the workflow, but ${id} has not changed yet: check that a worker is ` +
      `running, then look again with "operator ${noun} show ${id}".`,
  );
}

const NOT_CARRIED_OUT: Record<WhyNot, string> = {
  too_early:
    "according to the worker's configuration it is not past its deadline, so nothing has changed: give the worker and " +
    'the command line the same ISSUANCE_DEADLINE and TOPUP_DEADLINE.',
  contradicts_the_record:
    'another decision was recorded in the meantime, so this one changed nothing: see "operator audit list".',
  network_away:
    'the card network cannot be reached to look up the card, so nothing has changed: without its id there the card ' +
    'could never be frozen, blocked or topped up. Run this again when the network responds, or give the id that it ' +
    'told you with --network-card-id.',
  unknown_to_network:
    'the card network responds but does not know the card, so nothing has changed. If the card exists there all the ' +
    'same, give its id with --network-card-id; if not, use --failed.',
  other_id_at_network:
    'the card network has the card under a different id, so the given one was ignored: leave out --network-card-id.',
  id_of_another_card:
    'another card already has the given network card id, so nothing has changed: look the card up again by its token.',
};

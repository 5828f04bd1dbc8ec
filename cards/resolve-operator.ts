import { setTimeout as sleep } from 'node:timers/promises';
import type { IssuanceDecision, TransferDecision, WhyNot } from '../domain/decision.ts';
import { Refusal } from '../domain/refusal.ts';
import { TRANSFERS, type TransferDirection, transferDeadlineMs } from '../domain/transfer.ts';
import type { Session } from '../operator/session.ts';
import { readStatement } from '../platform/db/sql.ts';
import { checkHint, SEE_LOG } from '../platform/monitoring/worker-check.ts';
import {
  type ClaimedWorkflow,
  type OperationDecision,
  readWorkflowStatus,
  resolveOperation,
} from '../requests/claimed-workflow.ts';
import type { Operator } from '../requests/operator-context.ts';
import { type DecidedTable, readDecision } from './decision.ts';
import { findCard, type OperatorCard, readCard } from './reads.ts';
import { decideIssuance, decideTransfer } from './resolve.ts';
import { findTransfer, type OperatorTransfer, readTransfer } from './transfers/reads.ts';

/**
 * Resolves an issuance that is past its deadline, or gives a card whose id the network has not confirmed
 * another one, and waits until a worker has applied that.
 * @returns the card as it is then
 * @throws Refusal if that can't be done, or takes longer than `waitMs`.
 */
export async function resolveCard(
  session: Session,
  cardId: string,
  { reason, ...decision }: IssuanceDecision & { reason: string },
  waitMs: number,
): Promise<OperatorCard> {
  const orm = await session.orm();
  const before = await readCard(orm, cardId);
  const { issuanceDeadlineMs: deadlineMs } = session.config;
  const record = (operator: Operator) =>
    decideIssuance(operator, { cardId, ...decision, reason, deadlineMs });
  if (before.status !== 'funding_pending') {
    await record(await session.operator());
    return untilApplied(session, waitMs, { noun: 'card', id: cardId }, async () => {
      const card = await readCard(orm, cardId);
      return card.network_card_id === decision.networkCardId ? card : null;
    });
  }
  return resolvePending(session, waitMs, {
    noun: 'card',
    before,
    about: { cardId },
    decided: { operation: 'create_card', decision },
    record,
    find: () => findCard(orm, cardId),
  });
}

/**
 * Resolves a transfer that is past its deadline, and waits until a worker has applied that.
 * @returns the transfer as it is then
 * @throws Refusal if that can't be done, or takes longer than `waitMs`.
 */
export async function resolveTransfer(
  session: Session,
  decision: TransferDecision & { direction: TransferDirection; id: string; reason: string },
  waitMs: number,
): Promise<OperatorTransfer> {
  const { direction, id, outcome } = decision;
  const orm = await session.orm();
  const before = await readTransfer(orm, direction, id);
  const deadlineMs = transferDeadlineMs(session.config, direction);
  return resolvePending(session, waitMs, {
    noun: direction,
    before,
    about: { cardId: before.card_id, transferId: id },
    decided: { operation: TRANSFERS[direction].operation, decision: { outcome } },
    record: (operator) => decideTransfer(operator, { ...decision, deadlineMs }),
    find: () => findTransfer(orm, direction, id),
  });
}

/** A card or a transfer that the network has not confirmed. */
interface Pending {
  id: string;
  partner_id: string;
  mode: ClaimedWorkflow['mode'];
  status: string;
  failure_code: string | null;
  overdue_since: string | null;
  workflow_id: string;
}

interface Resolution<Resource extends Pending> {
  /** Its name on the command line. */
  noun: 'card' | TransferDirection;
  before: Resource;
  about: Pick<ClaimedWorkflow, 'cardId' | 'transferId'>;
  decided: OperationDecision;
  /** @throws Refusal if the operation may not be resolved this way. */
  record(operator: Operator): Promise<void>;
  find(): Promise<Resource | null>;
}

const TEMPORAL_TIMEOUT_MS = 5_000;

/** Records the decision, passes it to the workflow, and waits until the operation has ended. */
async function resolvePending<Resource extends Pending>(
  session: Session,
  waitMs: number,
  { noun, before, about, decided, record, find }: Resolution<Resource>,
): Promise<Resource> {
  const { id, partner_id: partnerId, mode } = before;
  const client = await session.temporal();
  const inTime = <T>(call: () => Promise<T>) => client.withDeadline(Date.now() + TEMPORAL_TIMEOUT_MS, call);
  // A decision that could not be passed on must not be recorded, so Temporal is tried first.
  await inTime(() => readWorkflowStatus(client, before.workflow_id));
  await record(await session.operator());
  const { taskQueue } = session;
  const [pending] = await claimStatements[tableOf(noun)]((await session.orm()).em.fork(), { id });
  if (pending !== undefined) {
    const claim = { ...about, claimId: pending.claim_id, partnerId, mode, taskQueue };
    await inTime(() => resolveOperation(client, claim, decided));
  }
  return untilApplied(session, waitMs, { noun, id }, async () => {
    const after = (await find()) ?? asFailed(before);
    if (['funding_pending', 'pending'].includes(after.status)) return null;
    if ((after.status === 'failed') === (decided.decision.outcome === 'failed')) return after;
    // The network's answer counts more than an operator's decision.
    throw new Refusal(
      `The network answered in the meantime, or somebody else decided otherwise: ${id} is ${after.status}. ` +
        `See "operator ${noun} show ${id}".`,
    );
  });
}

const tableOf = (noun: 'card' | TransferDirection): DecidedTable =>
  noun === 'card' ? 'card' : 'card_transfer';

const claimIn = (table: DecidedTable) =>
  readStatement(
    (db, { id }: { id: string }) =>
      db
        .selectFrom(table)
        .select('claim_id')
        .where('id', '=', id)
        .where('claim_id', 'is not', null)
        .$narrowType<{ claim_id: string }>(),
    { acrossTenants: 'operator' },
  );
/** The claim of what is pending. */
const claimStatements = {
  card: claimIn('card'),
  card_transfer: claimIn('card_transfer'),
};

/**
 * What a failed operation would look like. Its row is deleted if its request had no response yet: that
 * request gets 402, and what was refused is not shown to the partner (docs/partners/cards.md,
 * docs/partners/topups.md, docs/partners/withdrawals.md).
 */
function asFailed<Resource extends Pending>(before: Resource): Resource {
  return { ...before, status: 'failed', failure_code: 'provider_declined', overdue_since: null };
}

const POLL_INTERVAL_MS = 200;

/**
 * Waits until a worker has applied a recorded decision.
 * @param whenApplied returns null as long as it is not applied
 * @throws Refusal if the worker refuses it, or takes longer than `waitMs`.
 */
async function untilApplied<Resource>(
  session: Session,
  waitMs: number,
  { noun, id }: { noun: 'card' | TransferDirection; id: string },
  whenApplied: () => Promise<Resource | null>,
): Promise<Resource> {
  const orm = await session.orm();
  for (const giveUpAt = Date.now() + waitMs; Date.now() < giveUpAt; await sleep(POLL_INTERVAL_MS)) {
    const resource = await whenApplied();
    if (resource !== null) return resource;
    const decision = await readDecision(orm.em.fork(), tableOf(noun), id);
    if (decision?.refused !== undefined) throw new Refusal(`${id}: ${WHY_NOT_APPLIED[decision.refused]}`);
  }
  throw new Refusal(
    `The decision is recorded and was passed to the workflow, but ${id} has not changed yet: ` +
      `${await checkHint(SEE_LOG, session.countWorkers)}. Then look again with "operator ${noun} show ${id}".`,
  );
}

const WHY_NOT_APPLIED: Record<WhyNot, string> = {
  too_early:
    "according to the worker's configuration it is not past its deadline, so nothing has changed: give the worker and " +
    'the command line the same ISSUANCE_DEADLINE, TOPUP_DEADLINE and WITHDRAWAL_DEADLINE.',
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
    'another card has its network card id, so nothing has changed: look both cards up by their tokens, and correct the ' +
    'other one first.',
  not_recordable:
    "recording the decision failed because of an error of ours, so nothing has changed: see the worker's log, which has " +
    'the error, and run this again when its cause is gone.',
};

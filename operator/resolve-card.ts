import { setTimeout as sleep } from 'node:timers/promises';
import { decideIssuance } from '../commands/decide-issuance.ts';
import { Refusal } from '../commands/refusal.ts';
import { siblingId } from '../domain/ids.ts';
import { readIssueCardStatus } from '../workflows/client/issue-card-status.ts';
import { resolveIssueCard } from '../workflows/client/resolve-issue-card.ts';
import { findCard, type OperatorCard, readCard } from './reads/read-card.ts';
import type { Session } from './session.ts';

const TEMPORAL_TIMEOUT_MS = 5_000;
const POLL_MS = 200;
const ENDED = ['completed', 'failed', 'cancelled', 'terminated', 'timed_out', 'not_found'];

export interface Decision {
  outcome: 'issued' | 'failed';
  reason: string;
}

/**
 * Settles an issuance that waits for an operator, and waits until the card has changed.
 * @returns the card; one whose request had no answer yet is gone after a no, and is shown as it would be.
 * @throws Refusal where it is not past its deadline, takes longer than `waitMs`, or ended otherwise meanwhile.
 */
export async function resolveCard(
  session: Session,
  cardId: string,
  { outcome, reason }: Decision,
  waitMs: number,
): Promise<OperatorCard> {
  const orm = await session.orm();
  const before = await readCard(orm, cardId);
  const client = session.temporal();
  const inTime = <T>(call: () => Promise<T>) => client.withDeadline(Date.now() + TEMPORAL_TIMEOUT_MS, call);
  const status = await inTime(() => readIssueCardStatus(client, cardId));
  await decideIssuance(await session.operator(), {
    cardId,
    outcome,
    reason,
    deadlineMs: session.config.issuanceDeadlineMs,
    workflowEnded: ENDED.includes(status),
  });
  const issuance = {
    taskQueue: session.taskQueue,
    claimId: siblingId('claim', cardId),
    partnerId: before.partner_id,
    mode: before.mode,
  };
  await inTime(() => resolveIssueCard(client, issuance, { outcome }));
  for (const giveUpAt = Date.now() + waitMs; Date.now() < giveUpAt; await sleep(POLL_MS)) {
    const card = (await findCard(orm, cardId)) ?? gone(before);
    if (card.status === 'funding_pending') continue;
    if ((card.status === 'failed') === (outcome === 'failed')) return card;
    // What the network says goes before what an operator thinks.
    throw new Refusal(
      `The network has answered meanwhile, and ${cardId} is ${card.status}: see "operator card show ${cardId}".`,
    );
  }
  throw new Refusal(
    `The decision is recorded and handed over, and ${cardId} is still pending: see that a worker runs, and look again ` +
      `with "operator card show ${cardId}".`,
  );
}

/** A refusal in the same call leaves no card behind (decisions.md, "Resources"); its request is answered with 402. */
function gone(card: OperatorCard): OperatorCard {
  return { ...card, status: 'failed', failure_code: 'provider_declined', overdue_since: null };
}

import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { STATUS_CHANGES, type StatusChangeOperation } from '../domain/card-status.ts';
import { Refusal, unknownId } from '../domain/refusal.ts';
import type { Session } from '../operator/session.ts';
import { newId } from '../platform/crypto/new-id.ts';
import type { Row } from '../platform/db/entities.ts';
import { readStatement, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import { checkHint, SEE_LOG } from '../platform/monitoring/worker-check.ts';
import { type Operator, recordAudit } from '../requests/operator-context.ts';
import { openBody } from '../requests/response.ts';
import { changeCardStatusWorkflowId } from '../workflows/messages.ts';
import { type OperatorCard, readCard } from './reads.ts';

const POLL_INTERVAL_MS = 200;

/**
 * Freezes, unfreezes or blocks a card as its partner could: records the request, which a worker starts within
 * a second, and waits until it is done. It needs neither Temporal nor ENCRYPTION_KEYS; without the keys, it
 * can't say why a change was refused.
 * @returns the card as it is then, and the id of the request
 * @throws Refusal if the change is refused, or takes longer than `waitMs`
 */
export async function changeStatusByHand(
  session: Session,
  change: { cardId: string; operation: StatusChangeOperation; reason: string },
  waitMs: number,
): Promise<OperatorCard & { request_id: string }> {
  const { cardId } = change;
  const { participle: done } = STATUS_CHANGES[change.operation];
  const orm = await session.orm();
  const { claimId, requestId } = await askForStatusChange(await session.operator(), change);
  for (const giveUpAt = Date.now() + waitMs; Date.now() < giveUpAt; await sleep(POLL_INTERVAL_MS)) {
    const [response] = await selectResponse(orm.em.fork(), { claimId });
    if (response === undefined) continue;
    const card = await readCard(orm, cardId);
    if (response.response_status === 200) return { ...card, request_id: requestId };
    const why = await readRefusal(session, claimId, response.response_body);
    throw new Refusal(`${cardId} was not ${done}: ${why} See "operator card show ${cardId}".`);
  }
  throw new Refusal(
    `The request is recorded and goes on by itself, but ${cardId} is not ${done} yet: ` +
      `${await whatItWaitsFor(session, cardId, claimId)}. Look again with "operator card show ${cardId}"; after 10 minutes ` +
      'it is in "operator attention list".',
  );
}

const selectResponse = readStatement(
  (_, { claimId }: { claimId: string }) => sql<{ response_status: number; response_body: Buffer }>`
    SELECT response_status, response_body FROM idempotency_claim WHERE id = ${claimId}
      AND response_status IS NOT NULL`,
  { acrossTenants: 'id' },
);

async function readRefusal(session: Session, claimId: string, body: Buffer): Promise<string> {
  if (session.keys() === null) return 'it was refused (set ENCRYPTION_KEYS to see why).';
  const { ring } = await session.withKeys();
  return JSON.parse(openBody(ring, claimId, body)).error.message;
}

async function whatItWaitsFor(session: Session, cardId: string, claimId: string): Promise<string> {
  const { status_change: underWay } = await readCard(await session.orm(), cardId);
  if (underWay === null) return checkHint(SEE_LOG, session.countWorkers);
  return underWay.workflow_id === changeCardStatusWorkflowId(cardId, claimId)
    ? 'the card network has not confirmed it'
    : 'another change of the card comes first, and the card network has not confirmed that';
}

const ACTIONS: Record<StatusChangeOperation, string> = {
  freeze_card: 'card.freeze',
  unfreeze_card: 'card.unfreeze',
  block_card: 'card.block',
};

/**
 * Asks for a freeze, unfreeze or block, and records who did and why. The sweep of abandoned claims starts the
 * work, as it does for partners' requests whose process died; in test mode too.
 * @throws Refusal if there is no such card
 */
export function askForStatusChange(
  { orm, actor }: Operator,
  asked: { cardId: string; operation: StatusChangeOperation; reason: string },
): Promise<{ claimId: string; requestId: string }> {
  const { cardId, operation, reason } = asked;
  return transaction(orm, async (tx) => {
    // In this order, because a request's claim is looked for from the time of the request's id on.
    const requestId = newId('req');
    const claimId = newId('claim');
    const [card] = await claim(tx, { claimId, cardId, operation, requestId });
    if (card === undefined) throw unknownId('card', cardId, 'run "operator card list"');
    const { partner_id: partnerId, mode } = card;
    const detail = { partnerId, mode, requestId, reason };
    recordAudit(tx, { actor, action: ACTIONS[operation], subject: cardId, detail });
    return { claimId, requestId };
  });
}

interface Claiming {
  claimId: string;
  cardId: string;
  operation: StatusChangeOperation;
  requestId: string;
}

const claim = writeStatement(
  (_, { claimId, cardId, operation, requestId }: Claiming) => sql<Row<'card', 'partner_id' | 'mode'>>`
    SELECT partner_id, mode FROM claim_status_change(${claimId}, ${cardId}, ${operation}, ${requestId})`,
);

import { setTimeout as sleep } from 'node:timers/promises';
import { NOT_BOOKED, WITHDRAWAL_NOT_BOOKED } from '../attention/late-answers.ts';
import { checkHint, SEE_LOG } from '../attention/worker-check.ts';
import { decideContradiction } from '../commands/funding/book-topup.ts';
import { Refusal } from '../commands/refusal.ts';
import { readStatement } from '../db/sql.ts';
import { findTopUp, type OperatorTopUp } from './reads/topups.ts';
import { findWithdrawal, type OperatorWithdrawal } from './reads/withdrawals.ts';
import type { Session } from './session.ts';

const POLL_INTERVAL_MS = 200;

/**
 * Books a top-up that failed by our record, and that the network has carried out, and waits until a worker has done so.
 * @returns the top-up as it is then
 * @throws Refusal if there is nothing to book, it can't be booked, or that takes longer than `waitMs`.
 */
export async function bookTopUpByHand(
  session: Session,
  id: string,
  reason: string,
  waitMs: number,
): Promise<OperatorTopUp> {
  const orm = await session.orm();
  await decideContradiction(await session.operator(), { kind: 'topup', id, outcome: 'booked', reason });
  for (const giveUpAt = Date.now() + waitMs; Date.now() < giveUpAt; await sleep(POLL_INTERVAL_MS)) {
    const [late] = await lateDecision(orm.em.fork(), { id });
    if (late?.decision?.refused !== undefined) {
      throw new Refusal(`${id} was not booked: ${NOT_BOOKED[late.decision.refused]}.`);
    }
    if (late !== undefined) continue;
    const topUp = await findTopUp(orm, id);
    if (topUp?.status === 'succeeded') return topUp;
    throw new Refusal(`The card network now says that it has not carried out ${id}, so nothing was booked.`);
  }
  throw new Refusal(
    `The decision is recorded, but ${id} is not booked yet: ${await checkHint(SEE_LOG, session.countWorkers)}. Then look ` +
      `again with "operator topup show ${id}".`,
  );
}

/**
 * Books a withdrawal that failed by our record, and that the network has carried out, and waits until a worker has done so.
 * @returns the withdrawal as it is then
 * @throws Refusal if there is nothing to book, it can't be booked, or that takes longer than `waitMs`.
 */
export async function bookWithdrawalByHand(
  session: Session,
  id: string,
  reason: string,
  waitMs: number,
): Promise<OperatorWithdrawal> {
  const orm = await session.orm();
  const decision = { kind: 'withdrawal', id, outcome: 'booked', reason } as const;
  await decideContradiction(await session.operator(), decision);
  for (const giveUpAt = Date.now() + waitMs; Date.now() < giveUpAt; await sleep(POLL_INTERVAL_MS)) {
    const [late] = await lateDecision(orm.em.fork(), { id });
    if (late?.decision?.refused !== undefined) {
      throw new Refusal(`${id} was not booked: ${WITHDRAWAL_NOT_BOOKED[late.decision.refused]}.`);
    }
    if (late !== undefined) continue;
    const withdrawal = await findWithdrawal(orm, id);
    if (withdrawal?.status === 'succeeded') return withdrawal;
    throw new Refusal(`The card network now says that it has not carried out ${id}, so nothing was booked.`);
  }
  throw new Refusal(
    `The decision is recorded, but ${id} is not booked yet: ${await checkHint(SEE_LOG, session.countWorkers)}. Then look ` +
      `again with "operator withdrawal show ${id}".`,
  );
}

const lateDecision = readStatement((db, { id }: { id: string }) =>
  db.selectFrom('late_answer').select('decision').where('id', '=', id),
);

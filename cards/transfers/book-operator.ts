import { setTimeout as sleep } from 'node:timers/promises';
import { Refusal } from '../../domain/refusal.ts';
import type { Session } from '../../operator/session.ts';
import { readStatement } from '../../platform/db/sql.ts';
import { checkHint, SEE_LOG } from '../../platform/monitoring/worker-check.ts';
import { decideContradiction } from '../late-answers.ts';
import { NOT_BOOKED, WITHDRAWAL_NOT_BOOKED } from '../late-answers-attention.ts';
import { findTopUp, type OperatorTopUp } from './top-up-operator-reads.ts';
import { findWithdrawal, type OperatorWithdrawal } from './withdrawal-operator-reads.ts';

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
  await untilDecided(session, id, waitMs, { noun: 'topup', notBooked: NOT_BOOKED });
  const topUp = await findTopUp(orm, id);
  if (topUp?.status !== 'succeeded') throw nothingBooked(id);
  return topUp;
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
  await untilDecided(session, id, waitMs, { noun: 'withdrawal', notBooked: WITHDRAWAL_NOT_BOOKED });
  const withdrawal = await findWithdrawal(orm, id);
  if (withdrawal?.status !== 'succeeded') throw nothingBooked(id);
  return withdrawal;
}

const nothingBooked = (id: string) =>
  new Refusal(`The card network now says that it has not carried out ${id}, so nothing was booked.`);

/** @throws Refusal if it can't be booked, or no worker has done so within `waitMs` */
async function untilDecided(
  session: Session,
  id: string,
  waitMs: number,
  { noun, notBooked }: { noun: 'topup' | 'withdrawal'; notBooked: typeof NOT_BOOKED },
): Promise<void> {
  const orm = await session.orm();
  for (const giveUpAt = Date.now() + waitMs; Date.now() < giveUpAt; await sleep(POLL_INTERVAL_MS)) {
    const [late] = await lateDecision(orm.em.fork(), { id });
    if (late === undefined) return;
    const why = late.decision?.refused;
    if (why !== undefined) throw new Refusal(`${id} was not booked: ${notBooked[why]}.`);
  }
  throw new Refusal(
    `The decision is recorded, but ${id} is not booked yet: ${await checkHint(SEE_LOG, session.countWorkers)}. Then look ` +
      `again with "operator ${noun} show ${id}".`,
  );
}

const lateDecision = readStatement((db, { id }: { id: string }) =>
  db.selectFrom('late_answer').select('decision').where('id', '=', id),
);

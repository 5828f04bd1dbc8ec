import { setTimeout as sleep } from 'node:timers/promises';
import { Refusal } from '../../domain/refusal.ts';
import type { TransferDirection } from '../../domain/transfer.ts';
import type { Session } from '../../operator/session.ts';
import { readStatement } from '../../platform/db/sql.ts';
import { checkHint, SEE_LOG } from '../../platform/monitoring/worker-check.ts';
import { decideContradiction } from '../late-answers.ts';
import { NOT_BOOKED } from '../late-answers-attention.ts';
import { findTransfer, type OperatorTransfer } from './reads.ts';

const POLL_INTERVAL_MS = 200;

/**
 * Books a transfer that failed by our record, and that the network has carried out, and waits until a worker
 * has done so.
 * @returns the transfer as it is then
 * @throws Refusal if there is nothing to book, it can't be booked, or that takes longer than `waitMs`.
 */
export async function bookByHand(
  session: Session,
  { direction, id, reason }: { direction: TransferDirection; id: string; reason: string },
  waitMs: number,
): Promise<OperatorTransfer> {
  const orm = await session.orm();
  await decideContradiction(await session.operator(), { kind: direction, id, outcome: 'booked', reason });
  await untilDecided(session, direction, id, waitMs);
  const transfer = await findTransfer(orm, direction, id);
  if (transfer?.status === 'succeeded') return transfer;
  throw new Refusal(`The card network now says that it has not carried out ${id}, so nothing was booked.`);
}

/** @throws Refusal if it can't be booked, or no worker has done so within `waitMs` */
async function untilDecided(
  session: Session,
  direction: TransferDirection,
  id: string,
  waitMs: number,
): Promise<void> {
  const orm = await session.orm();
  for (const giveUpAt = Date.now() + waitMs; Date.now() < giveUpAt; await sleep(POLL_INTERVAL_MS)) {
    const [late] = await lateDecision(orm.em.fork(), { id });
    if (late === undefined) return;
    const why = late.decision?.refused;
    if (why !== undefined) throw new Refusal(`${id} was not booked: ${NOT_BOOKED[direction][why]}.`);
  }
  throw new Refusal(
    `The decision is recorded, but ${id} is not booked yet: ${await checkHint(SEE_LOG, session.countWorkers)}. Then look ` +
      `again with "operator ${direction} show ${id}".`,
  );
}

const lateDecision = readStatement((db, { id }: { id: string }) =>
  db.selectFrom('late_answer').select('decision').where('id', '=', id),
);

import { cardsTaskQueue } from '../../../platform/config/task-queues.ts';
import { query } from '../../../platform/db/sql.ts';
import { resolveOperation } from '../../../requests/claimed-workflow.ts';
import { claimOf } from '../../support/claims.ts';
import { until } from '../../support/until.ts';
import type { Card } from '../account.ts';
import type { Pending } from '../rules/card-state.ts';
import type { Operation } from '../rules/operation.ts';
import { carryOut } from './perform.ts';
import type { Run } from './run.ts';
import { type Service, untilThere, waitFor } from './running-service.ts';

/** The operation in flight on a card that waits for an operator, at a quiet point. */
export async function findOverdue({ service }: Run, { states }: Card): Promise<Pending | undefined> {
  const pending = states[0]?.pending.find(({ cents }) => cents % 100 === 47);
  if (pending === undefined) return undefined;
  return (await read(service, pending))?.overdue === true ? pending : undefined;
}

/** An operator decides all of a card's operations in flight, one after the other, once each waits for a decision. */
export async function decideOverdue(run: Run, card: Card, name: string): Promise<void> {
  for (const [index, pending] of (card.states[0]?.pending ?? []).entries()) {
    await untilRow(run.service, pending, 'overdue', (row) => row?.overdue === true);
    card.steps.push([await resolve(run, card, pending, index % 2 === 0, `${name}.resolve${index}`)]);
  }
}

/** An operator decides it, and waits until it is over: through the decision, or through a block that came first. */
export function resolve(
  run: Run,
  card: Card,
  pending: Pending,
  succeeded: boolean,
  name: string,
): Promise<Operation> {
  const { service } = run;
  const question = { kind: 'resolve', subject: pending.op, succeeded } as const;
  const send = async () => {
    await untilThere(() => decide(service, card, pending, succeeded));
    await untilRow(service, pending, 'resolved', (row) => row?.isPending !== true);
    return { status: 200, headers: new Headers(), text: '', json: undefined };
  };
  return carryOut(run, card, { question, send, saysSo: false }, { name, twice: false });
}

async function decide(
  { stack }: Service,
  card: Card,
  { id, what }: Pending,
  succeeded: boolean,
): Promise<void> {
  const { partnerId, mode } = card.account;
  const taskQueue = cardsTaskQueue(stack.config.taskQueuePrefix);
  const claimId = await claimOf(stack, id ?? '');
  const claim = { claimId, partnerId, mode, cardId: card.id ?? '', taskQueue };
  const outcome = succeeded ? 'succeeded' : 'failed';
  switch (what) {
    case 'card': {
      const decision = { outcome: succeeded ? 'issued' : 'failed' } as const;
      return resolveOperation(stack.client, claim, { operation: 'create_card', decision });
    }
    case 'topup': {
      const decided = { operation: 'top_up_card', decision: { outcome } } as const;
      return resolveOperation(stack.client, { ...claim, transferId: id ?? '' }, decided);
    }
    case 'withdrawal': {
      const decided = { operation: 'withdraw_from_card', decision: { outcome } } as const;
      return resolveOperation(stack.client, { ...claim, transferId: id ?? '' }, decided);
    }
  }
}

function untilRow(
  service: Service,
  pending: Pending,
  state: string,
  is: (row: Awaited<ReturnType<typeof read>>) => boolean,
): Promise<unknown> {
  return waitFor(service, () =>
    until(`${pending.id} is ${state}`, async () => is(await untilThere(() => read(service, pending)))),
  );
}

async function read({ stack }: Service, { id, what }: Pending) {
  const [row] = await query<{ isPending: boolean; overdue: boolean }>(
    stack.orm.em.fork(),
    `SELECT status IN ('funding_pending', 'pending') AS "isPending", overdue_since IS NOT NULL AS overdue
     FROM ${what === 'card' ? 'card' : 'card_transfer'} WHERE id = $1`,
    [id],
  );
  return row;
}

import assert from 'node:assert/strict';
import { query } from '../../../db/sql.ts';
import type { Answer, TestStack } from '../stack.ts';
import { claimUnderWay, networkStatus } from './card-status.ts';
import { eventTypes, readCardRow } from './cards.ts';

const EVENTS = { active: 'card.unfrozen', frozen: 'card.frozen', blocked: 'card.blocked' };
type Status = keyof typeof EVENTS;

/**
 * Holds a live card, active at first, and the answers to all the changes it was asked for to one order, in which the
 * network, the answers, the events and the card agree.
 * @returns what the network made of it, in order
 */
export async function assertOneOrder(
  stack: TestStack,
  cardId: string,
  answers: readonly Answer[],
): Promise<Status[]> {
  for (const { status, text, json } of answers) {
    assert.ok(status === 200 || json.error.code === 'invalid_state', text);
  }
  const made = answers.filter(({ status }) => status === 200).map(({ json }) => json.status);
  const order = await networkOrder(stack, cardId);
  assert.deepEqual(made.sort(), [...order].sort());
  const [issued, ...changed] = await eventTypes(stack, cardId);
  assert.equal(issued, 'card.issued');
  assert.deepEqual(
    changed,
    order.map((to) => EVENTS[to]),
  );
  const last = order.at(-1) ?? 'active';
  assert.equal((await readCardRow(stack, cardId))?.status, last);
  assert.equal(await networkStatus(stack, cardId), last);
  assert.equal(await claimUnderWay(stack, cardId), null);
  return order;
}

/** By our claims, which are the network's tokens. */
async function networkOrder({ orm }: TestStack, cardId: string): Promise<Status[]> {
  const rows = await query<{ to: Status }>(
    orm.em.fork(),
    `SELECT o.request ->> 'cardStatus' AS to FROM simulated_network.operation o
     JOIN idempotency_claim c ON c.id = o.token WHERE c.card_id = $1 ORDER BY o.taken_at`,
    [cardId],
  );
  return rows.map(({ to }) => to);
}

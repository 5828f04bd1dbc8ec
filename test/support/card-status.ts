import assert from 'node:assert/strict';
import type { CardStatus, StatusChangeOperation } from '../../domain/card-status.ts';
import type { Mode } from '../../domain/mode.ts';
import { query } from '../../platform/db/sql.ts';
import { createCard, eventTypes, readCardRow } from './cards.ts';
import { setCardStatus } from './money.ts';
import type { Answer, CallOptions, TestPartner, TestStack } from './stack.ts';
import { until } from './until.ts';

export type Verb = 'freeze' | 'unfreeze' | 'block';
export const VERBS: readonly Verb[] = ['freeze', 'unfreeze', 'block'];

export function changeStatus(
  partner: TestPartner,
  cardId: string,
  verb: Verb,
  options: Omit<CallOptions, 'body'> = {},
): Promise<Answer> {
  return partner.call('POST', `/cards/${cardId}/${verb}`, options);
}

/** The id of a new card of $100 in this status. A status that no request leads to is written to the row. */
export async function cardIn(
  stack: TestStack,
  partner: TestPartner,
  mode: Mode,
  status: CardStatus,
): Promise<string> {
  const { json } = await createCard(partner, { amount: 10_000 }, { mode });
  await until('the card is active', async () => (await readCardRow(stack, json.id))?.status === 'active');
  const verb = ({ frozen: 'freeze', blocked: 'block' } as const)[status as string];
  if (verb !== undefined) {
    const changed = await changeStatus(partner, json.id, verb, { mode });
    assert.equal(changed.status, 200, changed.text);
  } else if (status !== 'active') {
    const failureCode = status === 'failed' ? 'operator_failed' : null;
    await setCardStatus(stack, partner.id, status, { cardId: json.id, failureCode });
  }
  return json.id;
}

/** A card's status at the simulated network; undefined if the network does not have it. */
export async function networkStatus(
  { orm }: Pick<TestStack, 'orm'>,
  cardId: string,
): Promise<string | undefined> {
  const [row] = await query<{ status: string }>(
    orm.em.fork(),
    'SELECT status FROM simulated_network.card WHERE token = $1',
    [cardId],
  );
  return row?.status;
}

export interface StatusClaim {
  id: string;
  operation: StatusChangeOperation;
  response_status: number | null;
}

/** The claims of a card's status changes, oldest first. */
export function statusClaims({ orm }: TestStack, cardId: string): Promise<StatusClaim[]> {
  return query<StatusClaim>(
    orm.em.fork(),
    `SELECT id, operation, response_status FROM idempotency_claim
     WHERE card_id = $1 AND operation IN ('freeze_card', 'unfreeze_card', 'block_card') ORDER BY created_at`,
    [cardId],
  );
}

/** {@link statusClaims} once each has a response. */
export function untilChangesAnswered(stack: TestStack, cardId: string): Promise<StatusClaim[]> {
  return until('all changes are answered', async () => {
    const claims = await statusClaims(stack, cardId);
    return claims.every(({ response_status }) => response_status !== null) && claims;
  });
}

/** The claim of the change that the card is waiting for; null if there is none. */
export async function claimUnderWay({ orm }: TestStack, cardId: string): Promise<string | null> {
  const [row] = await query<{ status_change_claim_id: string | null }>(
    orm.em.fork(),
    'SELECT status_change_claim_id FROM card WHERE id = $1',
    [cardId],
  );
  return row?.status_change_claim_id ?? null;
}

export async function openCards(
  stack: TestStack,
  partner: TestPartner,
  mode: Mode,
): Promise<number | undefined> {
  const [row] = await query<{ open_cards: number }>(
    stack.orm.em.fork(),
    'SELECT open_cards FROM account_usage WHERE partner_id = $1 AND mode = $2',
    [partner.id, mode],
  );
  return row?.open_cards;
}

const EVENTS = { active: 'card.unfrozen', frozen: 'card.frozen', blocked: 'card.blocked' };
type Status = keyof typeof EVENTS;

/**
 * Asserts that a live card, active at first, was changed in one order, on which the network, the responses, the events
 * and the card agree.
 * @returns the statuses that the network gave it, in order
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

/** Found by our claims, whose ids are the network's tokens. */
async function networkOrder({ orm }: TestStack, cardId: string): Promise<Status[]> {
  const rows = await query<{ to: Status }>(
    orm.em.fork(),
    `SELECT o.request ->> 'cardStatus' AS to FROM simulated_network.operation o
     JOIN idempotency_claim c ON c.id = o.token WHERE c.card_id = $1 ORDER BY o.taken_at`,
    [cardId],
  );
  return rows.map(({ to }) => to);
}

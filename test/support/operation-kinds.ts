import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { adjustBalance } from '../../accounts/adjust-balance.ts';
import type { Mode } from '../../domain/mode.ts';
import {
  ISSUE_CARD,
  issueCardWorkflowId,
  TOP_UP_CARD,
  transferWorkflowId,
  WITHDRAW_FROM_CARD,
} from '../../workflows/messages.ts';
import { createCard } from './cards.ts';
import { balanceOf, priceOf } from './money.ts';
import { asOwner } from './postgres.ts';
import type { Answer, CallOptions, TestPartner, TestStack } from './stack.ts';
import { until } from './until.ts';

/** What an account has left of its balance before an operation. */
export const FUNDS = 100_000;
/** The network accepts it and never completes it (docs/partners/testing.md). */
export const NEVER_FINISHES = 5_047;

/** What moves money between an account's balance and a card, as rows of one table. */
export interface OperationKind {
  name: string;
  /** What a response, an event's data, an event's type and an operator's command call it. */
  object: 'card' | 'topup' | 'withdrawal';
  collection: 'cards' | 'topups' | 'withdrawals';
  /** What is on the card before, in cents; zero if the operation makes the card. */
  cardCents: number;
  body: object;
  /** What a response has besides what every kind has, whatever its status. */
  fields(on: Operating, amountCents: number): object;
  /** By how much it changes the balance and the card if it succeeds. */
  change(amountCents: number): { balanceCents: number; cardCents: number };
  statuses: { pending: string; succeeded: string };
  failureCode: string;
  events: { succeeded: string; failed: string };
  /** What a card's cents are not enough for, or the balance's. */
  short: 'insufficient_funds' | 'insufficient_card_balance';
  table: 'card' | 'card_transfer';
  workflow: { type: string; idOf(id: string): string };
  /** What an operator says who decides that it has succeeded. */
  yes: 'issued' | 'succeeded';
  /** The variable that holds its deadline. */
  deadline: 'ISSUANCE_DEADLINE' | 'TOPUP_DEADLINE' | 'WITHDRAWAL_DEADLINE';
}

const CARDHOLDER = {
  card_name: 'Ads',
  cardholder_first_name: 'Ada',
  cardholder_last_name: 'Lovelace',
  email: 'ada@example.com',
  external_ref: 'r',
  metadata: { team: 'marketing' },
};

export const ISSUANCE: OperationKind = {
  name: 'a card',
  object: 'card',
  collection: 'cards',
  cardCents: 0,
  body: CARDHOLDER,
  fields: () => ({
    ...CARDHOLDER,
    currency: 'USD',
    product_code: 'TEST-USD',
    network: 'visa',
    spending_controls: null,
  }),
  change: (amount) => ({ balanceCents: -priceOf(amount), cardCents: amount }),
  statuses: { pending: 'funding_pending', succeeded: 'active' },
  failureCode: 'issuance_failed',
  events: { succeeded: 'card.issued', failed: 'card.issue_failed' },
  short: 'insufficient_funds',
  table: 'card',
  workflow: { type: ISSUE_CARD, idOf: issueCardWorkflowId },
  yes: 'issued',
  deadline: 'ISSUANCE_DEADLINE',
};

export const TOP_UP: OperationKind = {
  name: 'a top-up',
  object: 'topup',
  collection: 'topups',
  cardCents: 1_000,
  body: {},
  fields: ({ cardId }, amount) => ({
    card_id: cardId,
    amount,
    fees: [{ type: 'card_funding', amount: priceOf(amount, 'card_topup') - amount }],
    total_debited: priceOf(amount, 'card_topup'),
  }),
  change: (amount) => ({ balanceCents: -priceOf(amount, 'card_topup'), cardCents: amount }),
  statuses: { pending: 'pending', succeeded: 'succeeded' },
  failureCode: 'topup_failed',
  events: { succeeded: 'topup.succeeded', failed: 'topup.failed' },
  short: 'insufficient_funds',
  table: 'card_transfer',
  workflow: { type: TOP_UP_CARD, idOf: (id) => transferWorkflowId('topup', id) },
  yes: 'succeeded',
  deadline: 'TOPUP_DEADLINE',
};

export const WITHDRAWAL: OperationKind = {
  name: 'a withdrawal',
  object: 'withdrawal',
  collection: 'withdrawals',
  cardCents: 10_000,
  body: {},
  fields: ({ cardId }, amount) => ({ card_id: cardId, amount }),
  change: (amount) => ({ balanceCents: amount, cardCents: -amount }),
  statuses: { pending: 'pending', succeeded: 'succeeded' },
  failureCode: 'withdrawal_failed',
  events: { succeeded: 'withdrawal.succeeded', failed: 'withdrawal.failed' },
  short: 'insufficient_card_balance',
  table: 'card_transfer',
  workflow: { type: WITHDRAW_FROM_CARD, idOf: (id) => transferWorkflowId('withdrawal', id) },
  yes: 'succeeded',
  deadline: 'WITHDRAWAL_DEADLINE',
};

export const OPERATION_KINDS: readonly OperationKind[] = [ISSUANCE, TOP_UP, WITHDRAWAL];

export interface Operating {
  stack: TestStack;
  kind: OperationKind;
  mode: Mode;
  partner: TestPartner;
  /** Empty if the operation makes the card. */
  cardId: string;
  fundsCents: number;
}

export async function operating(
  stack: TestStack,
  kind: OperationKind,
  mode: Mode,
  fundsCents: number = FUNDS,
): Promise<Operating> {
  const partner = await stack.createPartner();
  const fund = (amountCents: number) =>
    adjustBalance(stack.operator, { partnerId: partner.id, mode, amountCents, reason: 'a test', key: null });
  let cardId = '';
  if (kind.cardCents > 0) {
    await fund(priceOf(kind.cardCents));
    const { json } = await createCard(partner, { amount: kind.cardCents }, { mode });
    cardId = json.id;
    await until(`${cardId} is active`, async () => {
      const card = await partner.call('GET', `/cards/${cardId}`, { mode });
      return card.json.status === 'active';
    });
  }
  if (fundsCents > 0) await fund(fundsCents);
  return { stack, kind, mode, partner, cardId, fundsCents };
}

export const pathOf = ({ kind, cardId }: Operating): string =>
  kind.cardCents === 0 ? '/cards' : `/cards/${cardId}/${kind.collection}`;

export function ask(
  on: Operating,
  amount: unknown,
  options: Omit<CallOptions, 'mode'> = {},
): Promise<Answer> {
  const body = { ...on.kind.body, amount };
  return on.partner.call('POST', pathOf(on), {
    mode: on.mode,
    idempotencyKey: randomUUID(),
    body,
    ...options,
  });
}

export async function read({ partner, mode, kind }: Operating, id: string) {
  const { status, json, text } = await partner.call('GET', `/${kind.collection}/${id}`, { mode });
  assert.equal(status, 200, text);
  return json;
}

export const settled = (on: Operating, id: string) =>
  until(`${id} is not pending`, async () => {
    const json = await read(on, id);
    return json.status !== on.kind.statuses.pending && json;
  });

/** A live operation that the network has accepted and never completes. */
export interface Stuck extends Operating {
  id: string;
  workflow: WorkflowHandle;
}

export async function stuck(stack: TestStack, kind: OperationKind): Promise<Stuck> {
  const on = await operating(stack, kind, 'live');
  const { status, json, text } = await ask(on, NEVER_FINISHES);
  assert.equal(status, 202, text);
  return { ...on, id: json.id, workflow: stack.client.workflow.getHandle(kind.workflow.idOf(json.id)) };
}

/** As if it had begun 25 hours ago. */
export const age = ({ stack, kind, id }: Stuck) =>
  asOwner(stack, `UPDATE ${kind.table} SET created_at = created_at - interval '25 hours' WHERE id = $1`, [
    id,
  ]);

interface Row {
  status: string;
  failure_code: string | null;
  overdue_since: Date | null;
}

export async function rowOf({
  stack,
  kind,
  id,
}: Pick<Stuck, 'stack' | 'kind' | 'id'>): Promise<Row | undefined> {
  const columns = 'status, failure_code, overdue_since';
  const [row] = await asOwner<Row>(stack, `SELECT ${columns} FROM ${kind.table} WHERE id = $1`, [id]);
  return row;
}

/** The network carries out, or has not carried out, what it had only accepted. */
export const completeAtNetwork = (stack: TestStack, id: string, outcome = 'succeeded') =>
  asOwner(
    stack,
    'UPDATE simulated_network.operation SET completes_at = clock_timestamp(), outcome = $2 WHERE token = $1',
    [id, outcome],
  );

export const listed = async (on: Operating) =>
  (await on.partner.call('GET', `${pathOf(on)}?limit=100`, { mode: on.mode })).json.data;

export async function eventsAbout({ stack, partner, kind, mode }: Operating) {
  const rows = await asOwner<{ body: string }>(
    stack,
    'SELECT body FROM event WHERE partner_id = $1 AND mode = $2 AND type = ANY ($3) ORDER BY id',
    [partner.id, mode, Object.values(kind.events)],
  );
  return rows.map(({ body }) => JSON.parse(body));
}

export const typesAbout = async (on: Operating): Promise<string[]> =>
  (await eventsAbout(on)).map(({ type }) => type);

/** Of the card: its balance, and what of it is available; null if there is no card yet. */
export async function cardMoney({
  partner,
  mode,
  cardId,
}: Pick<Operating, 'partner' | 'mode' | 'cardId'>): Promise<number[] | null> {
  if (cardId === '') return null;
  const { json } = await partner.call('GET', `/cards/${cardId}`, { mode });
  return [json.balance, json.available_balance];
}

type State = 'nothing' | 'pending' | 'succeeded' | 'failed';

const changeIn = (kind: OperationKind, state: State, amount: number) =>
  state === 'pending' || state === 'succeeded' ? kind.change(amount) : { balanceCents: 0, cardCents: 0 };

/**
 * Asserts to the cent what the balance has available, on hold and in total, and what the card has and has available.
 * A pending withdrawal holds on the card, and the others hold on the balance.
 */
export async function assertMoney(on: Operating, state: State, amount = 0): Promise<void> {
  const { kind, fundsCents: funds } = on;
  const { balanceCents, cardCents } = changeIn(kind, state, amount);
  const [heldCents, heldOnCardCents] = [Math.max(-balanceCents, 0), Math.max(-cardCents, 0)];
  const card = kind.cardCents;
  const expected =
    state === 'pending'
      ? { balance: [funds - heldCents, heldCents, funds], card: [card, card - heldOnCardCents] }
      : {
          balance: [funds + balanceCents, 0, funds + balanceCents],
          card: [card + cardCents, card + cardCents],
        };
  assert.deepEqual(await balanceOf(on.partner, on.mode), expected.balance);
  if (on.cardId !== '') assert.deepEqual(await cardMoney(on), expected.card);
}

/** Asserts the whole of what the API shows of one, and that the money is where it says. */
export async function assertShown(
  on: Operating,
  // biome-ignore lint/suspicious/noExplicitAny: a card, top-up or withdrawal as the API gives it.
  json: any,
  amount: number,
  state: 'pending' | 'succeeded' | 'failed',
): Promise<void> {
  const { kind, mode } = on;
  const { id, created, completed_at, last4, exp_month, exp_year, ...rest } = json;
  assert.match(id, ID[kind.object]);
  assert.equal(new Date(created).toISOString(), created);
  const cardCents = kind.cardCents + (state === 'succeeded' ? kind.change(amount).cardCents : 0);
  assert.deepEqual(rest, {
    ...kind.fields(on, amount),
    object: kind.object,
    mode,
    status: state === 'failed' ? 'failed' : kind.statuses[state],
    failure_code: state === 'failed' ? kind.failureCode : null,
    ...(kind.object === 'card'
      ? { balance: cardCents, available_balance: cardCents }
      : { card_balance: cardCents }),
  });
  if (kind.object !== 'card') {
    assert.equal(completed_at !== null, state !== 'pending');
    if (state !== 'pending') assert.ok(completed_at >= created);
  } else if (state === 'succeeded') {
    assert.match(last4, /^\d{4}$/);
    assert.ok(exp_month >= 1 && exp_month <= 12 && exp_year > new Date(created).getUTCFullYear());
  } else assert.deepEqual([last4, exp_month, exp_year], [null, null, null]);
  await assertMoney(kind.object === 'card' ? { ...on, cardId: id } : on, state, amount);
}

const ID = {
  card: /^card_[0-9a-z]{26}$/,
  topup: /^topup_[0-9a-z]{26}$/,
  withdrawal: /^wdr_[0-9a-z]{26}$/,
};

/** Asserts that one event was written about it, with it and the card as they are now. */
export async function assertOneEvent(
  on: Operating,
  json: { id: string },
  outcome: 'succeeded' | 'failed',
): Promise<void> {
  const [event, ...more] = await eventsAbout(on);
  assert.deepEqual(more, []);
  const { id, created, ...envelope } = event;
  assert.match(id, /^evt_[0-9a-z]{26}$/);
  assert.equal(new Date(created).toISOString(), created);
  const { kind, mode, partner, cardId } = on;
  const path = `/cards/${kind.object === 'card' ? json.id : cardId}`;
  const { json: card } = await partner.call('GET', path, { mode });
  assert.deepEqual(envelope, { type: kind.events[outcome], mode, data: { [kind.object]: json, card } });
}

export async function assertNothing(on: Operating): Promise<void> {
  await assertMoney(on, 'nothing');
  assert.deepEqual(await listed(on), []);
  assert.deepEqual(await eventsAbout(on), []);
}

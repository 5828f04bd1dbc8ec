import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Mode } from '../../../domain/mode.ts';
import { networkIdOf, sendAsNetwork } from '../api/network-events.ts';
import { createCard, eventTypes } from '../cards.ts';
import { balanceOf } from '../money.ts';
import { asOwner } from '../postgres.ts';
import type { Answer, TestPartner, TestStack } from '../stack.ts';

/** What the card has, and what its authorization holds, before the operation. */
const CARD_CENTS = 1_000;
const HELD_CENTS = 300;

export interface Left {
  events: readonly string[];
  /** Balance and available balance of the card. */
  card: readonly [number, number];
  /** Status, amount, held and settled amount of the authorization; null without one. */
  authorization: readonly [string, number, number, number] | null;
  /** What the prepaid balance has paid: fees, and what the card lacks. Negative if it got back something. */
  paid: number;
  transactions: number;
}

const CREATED = 'card.authorization.created';
const UPDATED = 'card.authorization.updated';
const SETTLED = 'card.transaction.created';

const left = (
  events: string[],
  card: [number, number],
  authorization: Left['authorization'],
  paid = 0,
  transactions = 0,
): Left => ({ events, card, authorization, paid, transactions });

const APPROVED = left([CREATED], [1_000, 700], ['pending', 300, 300, 0]);
const DECLINED = left([CREATED, SETTLED], [1_000, 1_000], ['declined', 1_001, 0, 0], 25, 1);
const INCREASED = left([UPDATED], [1_000, 500], ['pending', 500, 500, 0]);
const NOT_INCREASED = left([SETTLED], [1_000, 700], ['pending', 300, 300, 0], 25, 1);
const CLEARED = left([UPDATED, SETTLED], [900, 700], ['pending', 300, 200, 100], 11, 1);
const CLEARED_BEFORE = left([CREATED], [900, 700], ['pending', 300, 200, 100], 0, 1);
const CLEARED_LATE = left([UPDATED, SETTLED], [0, 0], ['closed', 300, 0, 1_500], 500 + 18, 1);
const CLEARED_ALONE = left([SETTLED], [900, 900], null, 11, 1);
const REVERSED = left([UPDATED], [1_000, 800], ['pending', 200, 200, 0]);
const EXPIRED = left([UPDATED], [1_000, 1_000], ['expired', 300, 0, 0]);
/** The hold of a blocked card's authorization goes to the prepaid balance. */
const EXPIRED_ON_BLOCKED = left([UPDATED], [0, 0], ['expired', 300, 0, 0], -HELD_CENTS);

export interface Operation {
  before: 'nothing' | 'authorization' | 'authorization of a blocked card' | 'clearing';
  verb: string;
  body: object;
  left: Left;
}

/** What is asked for, as test mode's requests and the network's messages name it, and how. */
const VERBS = {
  authorize: { test: 'authorizations', live: 'authorization' },
  increment: { test: 'increment', live: 'increment' },
  'clear a part': { test: 'capture', live: 'clearing', more: { final: false } },
  clear: { test: 'capture', live: 'clearing' },
  force: { test: 'force-capture', live: '' },
  reverse: { test: 'reverse', live: 'reversal' },
  expire: { test: 'expire', live: 'expiry' },
};

type Row = [name: string, before: Operation['before'], verb: keyof typeof VERBS, cents: number, left: Left];
const IN_BOTH_MODES: Row[] = [
  ['an approval', 'nothing', 'authorize', 300, APPROVED],
  ['a decline', 'nothing', 'authorize', 1_001, DECLINED],
  ['an increment', 'authorization', 'increment', 200, INCREASED],
  ['a declined increment', 'authorization', 'increment', 701, NOT_INCREASED],
  ['a clearing', 'authorization', 'clear a part', 100, CLEARED],
  ['a reversal', 'authorization', 'reverse', 100, REVERSED],
  ['an expiry', 'authorization', 'expire', 0, EXPIRED],
  ['an expiry on a blocked card', 'authorization of a blocked card', 'expire', 0, EXPIRED_ON_BLOCKED],
];

function operationsOf(mode: Mode, amountField: string, own: Row[]): Record<string, Operation> {
  const operations: Record<string, Operation> = {};
  for (const [name, before, asked, cents, left] of [...IN_BOTH_MODES, ...own]) {
    const { [mode]: verb, ...wire } = VERBS[asked];
    const more = 'more' in wire ? wire.more : {};
    operations[name] = { before, verb, body: { ...(cents > 0 && { [amountField]: cents }), ...more }, left };
  }
  return operations;
}
export const TEST_OPERATIONS = operationsOf('test', 'amount', [
  ['a clearing without an authorization', 'nothing', 'force', 100, CLEARED_ALONE],
  ['a clearing above the balance of the card', 'authorization', 'clear', 1_500, CLEARED_LATE],
]);
export const LIVE_MESSAGES = operationsOf('live', 'amountCents', [
  ['an approval of what was cleared before', 'clearing', 'authorize', 300, CLEARED_BEFORE],
]);

/** A card with what an operation needs, and what there was before it. */
export interface Prepared {
  mode: Mode;
  partner: TestPartner;
  cardId: string;
  networkCardId: string;
  /** Null if there is none yet. */
  authorizationId: string | null;
  networkAuthorizationId: string;
  events: string[];
  totalCents: number;
}

export async function prepareAuthorization(
  stack: TestStack,
  partner: TestPartner,
  { before }: Operation,
  mode: Mode,
): Promise<Prepared> {
  const spending_controls = { spending_limits: [{ amount: 1_000_000, interval: 'all_time' }] };
  const { status, json, text } = await createCard(
    partner,
    { amount: CARD_CENTS, spending_controls },
    { mode },
  );
  assert.equal(status, 201, text);
  const prepared: Prepared = {
    ...{ mode, partner, cardId: json.id },
    networkCardId: mode === 'live' ? await networkIdOf(stack, json.id) : '',
    authorizationId: null,
    networkAuthorizationId: randomUUID(),
    ...{ events: [], totalCents: 0 },
  };
  if (before === 'clearing') {
    const clearing = networkMessage(prepared, 'clearing', { amountCents: 100, final: false });
    assert.equal((await sendMessage(stack, clearing)).status, 200);
  } else if (before !== 'nothing') prepared.authorizationId = await authorize(stack, prepared);
  if (before === 'authorization of a blocked card') {
    assert.equal((await partner.call('POST', `/cards/${json.id}/block`, { mode })).status, 200);
  }
  prepared.events = await eventTypes(stack, json.id);
  prepared.totalCents = (await balanceOf(partner, mode))[2] ?? 0;
  return prepared;
}

async function authorize(stack: TestStack, prepared: Prepared): Promise<string> {
  const { mode, partner, cardId } = prepared;
  if (mode === 'test') {
    const body = { amount: HELD_CENTS };
    const { json } = await partner.call('POST', `/test/cards/${cardId}/authorizations`, { body });
    assert.equal(json.status, 'pending');
    return json.id;
  }
  const request = networkMessage(prepared, 'authorization', { amountCents: HELD_CENTS });
  const { json } = await sendMessage(stack, request);
  assert.equal(json.approved, true);
  return json.authorizationId;
}

interface NetworkMessage {
  type: string;
  networkTransactionId: string;
}

/** A request for an authorization has its id; any other message names it. */
export function networkMessage(
  { networkCardId, networkAuthorizationId }: Prepared,
  type: string,
  more: object,
): NetworkMessage {
  const ids =
    type === 'authorization'
      ? { networkTransactionId: networkAuthorizationId }
      : { networkTransactionId: randomUUID(), networkAuthorizationId };
  return { ...{ networkCardId, currency: 'USD', type }, ...ids, ...more };
}

export function sendMessage(stack: TestStack, message: NetworkMessage): Promise<Answer> {
  const isRequest = message.type === 'authorization' || message.type === 'increment';
  const path = isRequest ? '/network/authorizations' : '/network/transactions';
  return sendAsNetwork(stack, path, JSON.stringify(message));
}

export async function listOf(
  { mode, partner, cardId }: Prepared,
  what: 'authorizations' | 'transactions',
): Promise<Record<string, unknown>[]> {
  return (await partner.call('GET', `/cards/${cardId}/${what}`, { mode })).json.data;
}

/** Its spending limit has counted exactly what its rows add up to. The first decision makes the counter. */
async function assertCounted(stack: TestStack, cardId: string): Promise<void> {
  const counters = await asOwner<{ counted: string; sum: string }>(
    stack,
    `SELECT c.net_cents AS counted, a.cents + t.cents AS sum
     FROM spending_counter c
       CROSS JOIN (SELECT coalesce(sum(CASE status WHEN 'declined' THEN 0 WHEN 'pending' THEN greatest(amount_cents, settled_cents)
         ELSE settled_cents END), 0) AS cents FROM card_authorization WHERE card_id = $1) a
       CROSS JOIN (SELECT coalesce(sum(amount_cents), 0) AS cents FROM card_transaction
         WHERE card_id = $1 AND type = 'purchase' AND authorization_id IS NULL) t
     WHERE c.card_id = $1`,
    [cardId],
  );
  for (const { counted, sum } of counters) assert.equal(counted, sum);
  const [{ decided } = { decided: '0' }] = await asOwner<{ decided: string }>(
    stack,
    'SELECT count(*) AS decided FROM card_authorization WHERE card_id = $1',
    [cardId],
  );
  assert.equal(counters.length, decided === '0' ? 0 : 1);
}

export async function leftOf(stack: TestStack, prepared: Prepared): Promise<Left> {
  const { mode, partner, cardId, events, totalCents } = prepared;
  const { json } = await partner.call('GET', `/cards/${cardId}`, { mode });
  const authorizations = await listOf(prepared, 'authorizations');
  assert.ok(authorizations.length <= 1);
  const [one] = authorizations as {
    status: string;
    amount: number;
    held_amount: number;
    settled_amount: number;
  }[];
  await assertCounted(stack, cardId);
  const [, , nowCents = 0] = await balanceOf(partner, mode);
  const transactions = await listOf(prepared, 'transactions');
  return {
    events: (await eventTypes(stack, cardId)).slice(events.length),
    card: [json.balance, json.available_balance],
    authorization: one === undefined ? null : [one.status, one.amount, one.held_amount, one.settled_amount],
    paid: totalCents - nowCents,
    transactions: transactions.length,
  };
}

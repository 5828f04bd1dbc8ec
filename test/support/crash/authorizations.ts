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

/** What an operation leaves. */
export interface Left {
  events: readonly string[];
  /** Balance and available balance of the card. */
  card: readonly [number, number];
  /** Status, amount, held and settled amount of the authorization; null without one. */
  authorization: readonly [string, number, number, number] | null;
  /** What the prepaid balance has paid: fees, and what the card lacks. Negative if it got back something. */
  paid: number;
  /** How many transactions the card has. */
  transactions: number;
}

const CREATED = 'card.authorization.created';
const UPDATED = 'card.authorization.updated';
const SETTLED = 'card.transaction.created';

const DECIDED: Record<'approved' | 'declined' | 'increased' | 'not increased', Left> = {
  approved: {
    events: [CREATED],
    card: [1_000, 700],
    authorization: ['pending', 300, 300, 0],
    paid: 0,
    transactions: 0,
  },
  declined: {
    events: [CREATED, SETTLED],
    card: [1_000, 1_000],
    authorization: ['declined', 1_001, 0, 0],
    paid: 25,
    transactions: 1,
  },
  increased: {
    events: [UPDATED],
    card: [1_000, 500],
    authorization: ['pending', 500, 500, 0],
    paid: 0,
    transactions: 0,
  },
  'not increased': {
    events: [SETTLED],
    card: [1_000, 700],
    authorization: ['pending', 300, 300, 0],
    paid: 25,
    transactions: 1,
  },
};

const ENDED: Record<'cleared' | 'cleared late' | 'cleared alone' | 'reversed' | 'expired', Left> = {
  cleared: {
    events: [UPDATED, SETTLED],
    card: [900, 700],
    authorization: ['pending', 300, 200, 100],
    paid: 11,
    transactions: 1,
  },
  'cleared late': {
    events: [UPDATED, SETTLED],
    card: [0, 0],
    authorization: ['closed', 300, 0, 1_500],
    paid: 500 + 18,
    transactions: 1,
  },
  'cleared alone': {
    events: [SETTLED],
    card: [900, 900],
    authorization: null,
    paid: 11,
    transactions: 1,
  },
  reversed: {
    events: [UPDATED],
    card: [1_000, 800],
    authorization: ['pending', 200, 200, 0],
    paid: 0,
    transactions: 0,
  },
  expired: {
    events: [UPDATED],
    card: [1_000, 1_000],
    authorization: ['expired', 300, 0, 0],
    paid: 0,
    transactions: 0,
  },
};

/** The hold of a blocked card's authorization goes to the prepaid balance. */
const EXPIRED_ON_BLOCKED: Left = { ...ENDED.expired, card: [0, 0], paid: -HELD_CENTS };

export interface Operation {
  /** What there is before. */
  before: 'nothing' | 'authorization' | 'authorization of a blocked card' | 'clearing';
  verb: string;
  body: object;
  left: Left;
}

export const TEST_OPERATIONS: Record<string, Operation> = {
  'an approval': { before: 'nothing', verb: 'authorizations', body: { amount: 300 }, left: DECIDED.approved },
  'a decline': { before: 'nothing', verb: 'authorizations', body: { amount: 1_001 }, left: DECIDED.declined },
  'a clearing without an authorization': {
    before: 'nothing',
    verb: 'force-capture',
    body: { amount: 100 },
    left: ENDED['cleared alone'],
  },
  'an increment': {
    before: 'authorization',
    verb: 'increment',
    body: { amount: 200 },
    left: DECIDED.increased,
  },
  'a declined increment': {
    before: 'authorization',
    verb: 'increment',
    body: { amount: 701 },
    left: DECIDED['not increased'],
  },
  'a clearing': {
    before: 'authorization',
    verb: 'capture',
    body: { amount: 100, final: false },
    left: ENDED.cleared,
  },
  'a clearing above the balance of the card': {
    before: 'authorization',
    verb: 'capture',
    body: { amount: 1_500 },
    left: ENDED['cleared late'],
  },
  'a reversal': { before: 'authorization', verb: 'reverse', body: { amount: 100 }, left: ENDED.reversed },
  'an expiry': { before: 'authorization', verb: 'expire', body: {}, left: ENDED.expired },
  'an expiry on a blocked card': {
    before: 'authorization of a blocked card',
    verb: 'expire',
    body: {},
    left: EXPIRED_ON_BLOCKED,
  },
};

export const LIVE_MESSAGES: Record<string, Operation> = {
  'an approval': {
    before: 'nothing',
    verb: 'authorization',
    body: { amountCents: 300 },
    left: DECIDED.approved,
  },
  'a decline': {
    before: 'nothing',
    verb: 'authorization',
    body: { amountCents: 1_001 },
    left: DECIDED.declined,
  },
  'an approval of what was cleared before': {
    before: 'clearing',
    verb: 'authorization',
    body: { amountCents: 300 },
    left: { ...ENDED.cleared, events: [CREATED], paid: 0 },
  },
  'an increment': {
    before: 'authorization',
    verb: 'increment',
    body: { amountCents: 200 },
    left: DECIDED.increased,
  },
  'a declined increment': {
    before: 'authorization',
    verb: 'increment',
    body: { amountCents: 701 },
    left: DECIDED['not increased'],
  },
  'a clearing': {
    before: 'authorization',
    verb: 'clearing',
    body: { amountCents: 100, final: false },
    left: ENDED.cleared,
  },
  'a reversal': {
    before: 'authorization',
    verb: 'reversal',
    body: { amountCents: 100 },
    left: ENDED.reversed,
  },
  'an expiry': { before: 'authorization', verb: 'expiry', body: {}, left: ENDED.expired },
  'an expiry on a blocked card': {
    before: 'authorization of a blocked card',
    verb: 'expiry',
    body: {},
    left: EXPIRED_ON_BLOCKED,
  },
};

/** A card with what an operation needs, and what there was before it. */
export interface Prepared {
  mode: Mode;
  partner: TestPartner;
  cardId: string;
  networkCardId: string;
  /** Null if there is none yet. */
  authorizationId: string | null;
  /** The network's id of the authorization. */
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

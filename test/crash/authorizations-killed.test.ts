import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import type { Mode } from '../../domain/mode.ts';
import { networkIdOf, sendAsNetwork } from '../support/api/network-events.ts';
import { createCard, eventTypes } from '../support/cards.ts';
import { askUntilEnd, END_TITLES, ENDS, type End, sendUntilEnd } from '../support/crash/ask-until-end.ts';
import {
  CARD_CENTS,
  HELD_CENTS,
  type Left,
  LIVE_MESSAGES,
  type Operation,
  TEST_OPERATIONS,
} from '../support/crash/authorizations.ts';
import { scratchFolder } from '../support/crash/processes.ts';
import { inParallel } from '../support/in-parallel.ts';
import { assertLedgerClean, balanceOf, fundedPartner } from '../support/money.ts';
import { asOwner } from '../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';

type Json = Record<string, unknown>;

/** A card with what an operation needs, and what there was before it. */
interface Prepared {
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

describe('an operation on an authorization', function () {
  this.timeout(300_000);
  let stack: TestStack;
  let folder: string;
  let ends: Promise<void>[];
  const runs = [
    ...(Object.keys(TEST_OPERATIONS) as string[]).map((name) => ['test', name] as const),
    ...(Object.keys(LIVE_MESSAGES) as string[]).map((name) => ['live', name] as const),
  ].flatMap(([mode, name]) => (Object.keys(ENDS) as End[]).map((end) => [mode, name, end] as const));
  before(async () => {
    folder = scratchFolder();
    stack = await startTestStack({ cardCreationWaitMs: 60_000, logLevel: 'error' });
    ends = inParallel(
      4,
      runs.map(
        ([mode, name, end]) =>
          () =>
            mode === 'test' ? inTestMode(name, end) : fromNetwork(name, end),
      ),
    );
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stack.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  runs.forEach(([mode, name, end], index) => {
    const title =
      mode === 'test'
        ? `in test mode, ${name}, has one effect, whose response a retry gets, when ${END_TITLES[end]}`
        : `that the network sends, ${name}, has one effect and one response, however often it is repeated, when ${END_TITLES[end]}`;
    it(title, () => ends[index]);
  });

  async function inTestMode(name: string, end: End): Promise<void> {
    const operation = TEST_OPERATIONS[name] as Operation;
    const prepared = await prepare(operation, 'test');
    const { partner, cardId, authorizationId } = prepared;
    const of = authorizationId === null ? `cards/${cardId}` : `authorizations/${authorizationId}`;
    const path = `/test/${of}/${operation.verb}`;
    const before = await leftOf(prepared);
    const key = randomUUID();
    const { body } = operation;
    await askUntilEnd(stack.config, folder, end, { mode: 'test', partner, path, body, key });
    assert.deepEqual(await leftOf(prepared), ENDS[end] ? operation.left : before);

    const retry = await partner.call('POST', path, { body, idempotencyKey: key });
    assert.ok(retry.status === 200 || retry.status === 201, retry.text);
    assert.equal(retry.headers.get('idempotent-replayed') === 'true', ENDS[end]);
    const again = await partner.call('POST', path, { body, idempotencyKey: key });
    assert.deepEqual([again.status, again.text], [retry.status, retry.text]);
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    assert.deepEqual(await leftOf(prepared), operation.left);
  }

  async function fromNetwork(name: string, end: End): Promise<void> {
    const operation = LIVE_MESSAGES[name] as Operation;
    const prepared = await prepare(operation, 'live');
    const { verb, body } = operation;
    const message = messageOf(prepared, verb, body);
    const before = await leftOf(prepared);
    await sendUntilEnd(stack.config, folder, end, (config) => send(verb, message, config));
    assert.deepEqual(await leftOf(prepared), ENDS[end] ? operation.left : before);

    const repeated = await send(verb, message);
    assert.equal(repeated.status, 200, repeated.text);
    const again = await send(verb, message);
    assert.deepEqual([again.status, again.text], [200, repeated.text]);
    assert.deepEqual(await leftOf(prepared), operation.left);
    const [authorization] = await list(prepared, 'authorizations');
    const [transaction] = await list(prepared, 'transactions');
    if (verb === 'authorization' || verb === 'increment') {
      const { approved, authorizationId } = repeated.json;
      assert.deepEqual([approved, authorizationId], [operation.left.paid === 0, authorization?.id]);
    } else if (verb === 'clearing') assert.deepEqual(repeated.json, { transactionId: transaction?.id });
    else assert.deepEqual(repeated.json, { authorizationId: authorization?.id });
  }

  async function prepare({ before }: Operation, mode: Mode): Promise<Prepared> {
    const partner = await fundedPartner(stack);
    const spending_controls = { spending_limits: [{ amount: 1_000_000, interval: 'all_time' }] };
    const { status, json, text } = await createCard(
      partner,
      { amount: CARD_CENTS, spending_controls },
      { mode },
    );
    assert.equal(status, 201, text);
    const prepared: Prepared = {
      mode,
      partner,
      cardId: json.id,
      networkCardId: mode === 'live' ? await networkIdOf(stack, json.id) : '',
      authorizationId: null,
      networkAuthorizationId: randomUUID(),
      events: [],
      totalCents: 0,
    };
    if (before === 'clearing') {
      const clearing = messageOf(prepared, 'clearing', { amountCents: 100, final: false });
      assert.equal((await send('clearing', clearing)).status, 200);
    } else if (before !== 'nothing') prepared.authorizationId = await authorize(prepared);
    if (before === 'authorization of a blocked card') {
      assert.equal((await partner.call('POST', `/cards/${json.id}/block`, { mode })).status, 200);
    }
    prepared.events = await eventTypes(stack, json.id);
    prepared.totalCents = (await balanceOf(partner, mode))[2] ?? 0;
    return prepared;
  }

  async function authorize(prepared: Prepared): Promise<string> {
    const { mode, partner, cardId } = prepared;
    if (mode === 'test') {
      const body = { amount: HELD_CENTS };
      const { json } = await partner.call('POST', `/test/cards/${cardId}/authorizations`, { body });
      assert.equal(json.status, 'pending');
      return json.id;
    }
    const request = messageOf(prepared, 'authorization', { amountCents: HELD_CENTS });
    const { json } = await send('authorization', request);
    assert.equal(json.approved, true);
    return json.authorizationId;
  }

  /** A request for an authorization has its id; any other message names it. */
  function messageOf(
    { networkCardId, networkAuthorizationId }: Prepared,
    type: string,
    more: object,
  ): object {
    const ids =
      type === 'authorization'
        ? { networkTransactionId: networkAuthorizationId }
        : { networkTransactionId: randomUUID(), networkAuthorizationId };
    return { networkCardId, currency: 'USD', type, ...ids, ...more };
  }

  function send(type: string, message: object, config = stack.config) {
    const isRequest = type === 'authorization' || type === 'increment';
    const path = isRequest ? '/network/authorizations' : '/network/transactions';
    return sendAsNetwork({ ...stack, config }, path, JSON.stringify(message));
  }

  async function list({ mode, partner, cardId }: Prepared, of: string): Promise<Json[]> {
    return (await partner.call('GET', `/cards/${cardId}/${of}`, { mode })).json.data;
  }

  /** Its spending limit has counted exactly what its rows add up to. The first decision makes the counter. */
  async function assertCounted(cardId: string): Promise<void> {
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

  async function leftOf(prepared: Prepared): Promise<Left> {
    const { mode, partner, cardId, events, totalCents } = prepared;
    const { json } = await partner.call('GET', `/cards/${cardId}`, { mode });
    const authorizations = await list(prepared, 'authorizations');
    assert.ok(authorizations.length <= 1);
    const [one] = authorizations as {
      status: string;
      amount: number;
      held_amount: number;
      settled_amount: number;
    }[];
    await assertCounted(cardId);
    const [, , nowCents = 0] = await balanceOf(partner, mode);
    const transactions = await list(prepared, 'transactions');
    return {
      events: (await eventTypes(stack, cardId)).slice(events.length),
      card: [json.balance, json.available_balance],
      authorization: one === undefined ? null : [one.status, one.amount, one.held_amount, one.settled_amount],
      paid: totalCents - nowCents,
      transactions: transactions.length,
    };
  }
});

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { signBody } from '../../../issuers/simulated/signature.ts';
import { expectError } from '../../support/api/answers.ts';
import { networkIdOf, networkTransaction, sendAsNetwork } from '../../support/api/network-events.ts';
import { whyWaiting } from '../../support/api/why-waiting.ts';
import { createCard } from '../../support/cards.ts';
import { assertLedgerClean, balanceOf, fundedPartner } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

const live = { mode: 'live' } as const;

describe('POST /network/transactions', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let cardId: string;
  let networkCardId: string;
  after(() => assertLedgerClean(stack, partner));
  before(async () => {
    stack = await sharedStack();
    partner = await fundedPartner(stack, 100_000);
  });
  beforeEach(async () => {
    cardId = (await createCard(partner, { amount: 1_000 }, live)).json.id;
    networkCardId = await networkIdOf(stack, cardId);
  });

  const send = (body: unknown, signature?: string | null) =>
    sendAsNetwork(
      stack,
      '/network/transactions',
      typeof body === 'string' ? body : JSON.stringify(body),
      signature,
    );
  const list = async () => (await partner.call('GET', `/cards/${cardId}/transactions`, live)).json.data;
  const onCard = async () => (await partner.call('GET', `/cards/${cardId}`, live)).json.balance;

  it('answers 200 with the id of the settled transaction', async () => {
    const merchant = { name: 'Café', categoryCode: '5812', city: 'Oslo', country: 'NO' };
    const { status, json } = await send(networkTransaction(networkCardId, { merchant }));
    const [made, ...others] = await list();
    assert.deepEqual([status, json, others], [200, { transactionId: made.id }, []]);
    assert.deepEqual([made.type, made.mode, made.card_balance_after], ['purchase', 'live', 900]);
    assert.deepEqual(made.merchant, { name: 'Café', category_code: '5812', city: 'Oslo', country: 'NO' });
  });

  it('answers the same if what is left out is said to be what it is by default, in another order', async () => {
    const event = networkTransaction(networkCardId);
    const { text } = await send(event);
    assert.equal((await send({ merchant: { name: null }, forced: true, ...event })).text, text);
    assert.deepEqual([(await list()).length, await onCard()], [1, 900]);
  });

  it('charges every cent once, to the card or to the balance, while the card is blocked and topped up', async () => {
    const own = await fundedPartner(stack, 100_000);
    const card = (await createCard(own, { amount: 2_000 }, live)).json.id;
    const network = await networkIdOf(stack, card);
    const [, , before = 0] = await balanceOf(own, 'live');
    const settled = Array.from({ length: 40 }, () => send(networkTransaction(network)));
    const topUp = own.call('POST', `/cards/${card}/topups`, {
      ...live,
      body: { amount: 500 },
      idempotencyKey: 'k',
    });
    const block = await own.call('POST', `/cards/${card}/block`, live);
    const more = Array.from({ length: 10 }, () => send(networkTransaction(network)));
    for (const { status } of await Promise.all([...settled, ...more])) assert.equal(status, 200);
    assert.equal(block.status, 200);
    const { json } = await own.call('GET', `/cards/${card}/transactions?limit=100`, live);
    assert.equal(json.data.length, 50);
    const fees = json.data.flatMap((one: { fees: { amount: number }[] }) =>
      one.fees.map((fee) => fee.amount),
    );
    const purchases = json.data.filter((one: { type: string }) => one.type === 'purchase').length;
    const funding = (await topUp).status === 201 ? 50 : 0;
    // What the block released has come back: only purchases and fees are gone.
    const gone = purchases * 100 + fees.reduce((sum: number, cents: number) => sum + cents, 0) + funding;
    const after = before + 2_000 - gone;
    assert.deepEqual(await balanceOf(own, 'live'), [after, 0, after]);
    assert.equal((await own.call('GET', `/cards/${card}`, live)).json.balance, 0);
  });

  it('keeps what is not about a live card of the service', async () => {
    const test = await createCard(partner, { amount: 1_000 });
    const ids = [cardId, await networkIdOf(stack, test.json.id), 'net_unknown', "';--"];
    for (const id of ids) {
      const event = networkTransaction(id);
      assert.equal((await send(event)).status, 202);
      assert.equal(await whyWaiting(stack, event.networkTransactionId), 'card_unknown', id);
    }
  });

  it('answers 401 for a missing or wrong signature, before anything else', async () => {
    const body = JSON.stringify(networkTransaction(networkCardId));
    for (const signature of [null, '', 'x', signBody(body, 'another')]) {
      expectError(await send(body, signature), 'invalid_api_key');
      expectError(await send('{', signature), 'invalid_api_key');
    }
    assert.equal(await onCard(), 1_000);
  });

  it('answers 400 for a signed body without an id to recognise it by', async () => {
    for (const body of ['', '{', '[]', '"x"', 'null', '{"type":"refund","type":"purchase"}']) {
      expectError(await send(body), 'validation_failed', ['body']);
    }
    expectError(await send('{}'), 'validation_failed', [
      ...['networkCardId', 'networkTransactionId', 'type', 'amountCents', 'currency'],
    ]);
    for (const id of ['', 1, null, 'a b', 'é', 'x'.repeat(101)]) {
      const body = networkTransaction(networkCardId, { networkTransactionId: id });
      expectError(await send(body), 'validation_failed', ['networkTransactionId']);
    }
    assert.deepEqual([await list(), await onCard()], [[], 1_000]);
  });

  it('keeps a transaction with anything that it does not understand, and books nothing', async () => {
    for (const [field, ...values] of [
      ['networkCardId', '', 1, null, 'a b', 'a\0', 'x'.repeat(101)],
      ['type', 'capture', '', null, 'a\0', '\ud800'],
      ['amountCents', 0, -1, '100', null, 2 ** 53],
      ['currency', 'EUR', 'usd', null, 'EU\0', '\udc00'],
      ['forced', 'true', 1, null],
      ['merchant', 'x', [], null, { name: 'a\nb' }, { street: 'x' }, { city: 5 }],
      ['__proto', 1],
    ] as [string, ...unknown[]][]) {
      for (const value of values) {
        const event = networkTransaction(networkCardId, { [field]: value });
        assert.equal((await send(event)).status, 202, `${field}: ${value}`);
        const why = field === 'networkCardId' ? 'card_unknown' : 'unreadable';
        assert.equal(await whyWaiting(stack, event.networkTransactionId), why);
      }
    }
    for (const amount of ['1.0', '1e2', '1e400', '100.5']) {
      const event = networkTransaction(networkCardId);
      const answer = await send(JSON.stringify(event).replace(':100', `:${amount}`));
      assert.equal(answer.status, 202);
      assert.equal(await whyWaiting(stack, event.networkTransactionId), 'unreadable');
    }
    assert.deepEqual([await list(), await onCard()], [[], 1_000]);
  });

  it('keeps an amount that no balance can hold', async () => {
    const event = networkTransaction(networkCardId, { type: 'refund', amountCents: Number.MAX_SAFE_INTEGER });
    const [first, second] = [await send(event), await send(event)];
    assert.deepEqual([first.status, second.text], [202, first.text]);
    assert.equal(await whyWaiting(stack, event.networkTransactionId), 'unbookable');
  });

  it('keeps a transaction on a card that is still being issued', async () => {
    const pending = await createCard(partner, { amount: 1_047 }, live);
    assert.equal(pending.status, 202);
    const { id } = pending.json;
    await asOwner(stack, 'UPDATE card SET network_card_id = $2 WHERE id = $1', [id, `net_${id}`]);
    const event = networkTransaction(`net_${id}`);
    const [first, second] = [await send(event), await send(event)];
    assert.deepEqual([first.status, second.text], [202, first.text]);
    assert.equal(await whyWaiting(stack, event.networkTransactionId), 'card_not_issued');
  });

  it('books all that waits of a payment once its card is known, however much it is', async () => {
    const clearing = { type: 'clearing', networkPaymentId: randomUUID(), amountCents: 1, final: false };
    const unknown = `net_${clearing.networkPaymentId}`;
    const answers = await Promise.all(
      Array.from({ length: 150 }, () => send(networkTransaction(unknown, clearing))),
    );
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([202]));
    await asOwner(stack, 'UPDATE card SET network_card_id = $2 WHERE id = $1', [cardId, unknown]);
    await until('nothing of it waits', async () => {
      const rows = await asOwner(stack, 'SELECT FROM network_inbox WHERE id = $1', [
        clearing.networkPaymentId,
      ]);
      return rows.length === 0;
    });
    assert.equal(await onCard(), 1_000 - answers.length);
  });
});

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { expectError } from '../../support/api/answers.ts';
import { networkIdOf, sendAsNetwork } from '../../support/api/network-events.ts';
import { whyWaiting } from '../../support/api/why-waiting.ts';
import { createCard } from '../../support/cards.ts';
import { assertLedgerClean, fundedPartner } from '../../support/money.ts';
import { cardMoney } from '../../support/operation-kinds.ts';
import { environmentOf, operateIn } from '../../support/operator/operate.ts';
import { asOwner, connectTo, ownerUrlOf } from '../../support/postgres.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

const live = { mode: 'live' } as const;

describe('POST /network/authorizations', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let cardId: string;
  let networkCardId: string;
  before(async () => {
    stack = await sharedStack();
    partner = await fundedPartner(stack, 100_000);
  });
  beforeEach(async () => {
    cardId = (await createCard(partner, { amount: 1_000 }, live)).json.id;
    networkCardId = await networkIdOf(stack, cardId);
  });
  after(() => assertLedgerClean(stack, partner));

  const post = (path: string, more: object) => {
    const body = { networkCardId, networkTransactionId: randomUUID(), currency: 'USD', ...more };
    return sendAsNetwork(stack, path, JSON.stringify(body));
  };
  const ask = (amountCents: number, more: object = {}) =>
    post('/network/authorizations', { type: 'authorization', amountCents, ...more });
  const tell = (type: string, networkAuthorizationId: string | null, more: object = {}) =>
    post('/network/transactions', { type, networkAuthorizationId, ...more });
  const read = async (id: string) => (await partner.call('GET', `/authorizations/${id}`, live)).json;
  const card = () => cardMoney({ partner, mode: 'live', cardId });

  it('answers whether the card pays, and holds the amount if it does', async () => {
    const merchant = { name: 'Café', categoryCode: '5812', city: 'Oslo', country: 'NO' };
    const { status, json } = await ask(300, { merchant });
    assert.deepEqual(
      [status, json],
      [200, { approved: true, declineReason: null, authorizationId: json.authorizationId }],
    );
    const made = await read(json.authorizationId);
    assert.deepEqual([made.status, made.held_amount, made.mode], ['pending', 300, 'live']);
    assert.deepEqual(made.merchant, { name: 'Café', category_code: '5812', city: 'Oslo', country: 'NO' });
    assert.deepEqual(await card(), [1_000, 700]);
    const declined = await ask(701);
    assert.deepEqual(
      [declined.json.approved, declined.json.declineReason],
      [false, 'insufficient_card_balance'],
    );
  });

  it('decides on the card that has the id now, whichever had it before', async () => {
    const other = (await createCard(partner, { amount: 1_000 }, live)).json.id;
    const otherNetworkId = await networkIdOf(stack, other);
    assert.equal((await ask(300)).json.approved, true);
    const identify = (id: string, networkId: string) =>
      asOwner(stack, 'UPDATE card SET network_card_id = $2 WHERE id = $1', [id, networkId]);
    await identify(cardId, 'none yet');
    await identify(other, networkCardId);
    await identify(cardId, otherNetworkId);
    const { json } = await ask(200);
    assert.equal((await read(json.authorizationId)).card_id, other);
    assert.deepEqual(await card(), [1_000, 700]);
    await identify(other, 'none any more');
    expectError(await ask(1), 'card_not_found');
  });

  it('takes a used id with another amount or merchant for another message, and changes nothing', async () => {
    const merchant = { name: 'Café', categoryCode: '5812', city: 'Oslo', country: 'NO' };
    const A = randomUUID();
    const request = { networkTransactionId: A, merchant };
    const asked = await ask(300, request);
    const clearing = { amountCents: 100, final: false, networkTransactionId: randomUUID(), merchant };
    const cleared = await tell('clearing', A, clearing);
    expectError(await ask(301, request), 'idempotency_conflict');
    for (const other of [
      { ...merchant, name: 'Bar' },
      { ...merchant, categoryCode: '5813' },
      { ...merchant, city: null },
      { ...merchant, country: 'SE' },
    ]) {
      expectError(await ask(300, { ...request, merchant: other }), 'idempotency_conflict');
    }
    const kept = await tell('clearing', A, { ...clearing, merchant: { ...merchant, name: 'Bar' } });
    expectError(kept, 'idempotency_conflict');
    assert.deepEqual(
      [await ask(300, request), await tell('clearing', A, clearing)].map(({ text }) => text),
      [asked.text, cleared.text],
    );
    assert.deepEqual(await card(), [900, 700]);
  });

  it('decides a request for nothing by the status of the card, and leaves no record', async () => {
    const { json } = await ask(0);
    assert.deepEqual(json, { approved: true, declineReason: null, authorizationId: null });
    await partner.call('POST', `/cards/${cardId}/freeze`, live);
    assert.equal((await ask(0)).json.declineReason, 'card_frozen');
    const listed = (await partner.call('GET', `/cards/${cardId}/authorizations`, live)).json.data;
    assert.deepEqual(listed, []);
  });

  it('takes clearings, reversals and expiries, each once however often it is repeated', async () => {
    const A = randomUUID();
    const { authorizationId } = (await ask(300, { networkTransactionId: A })).json;
    const clearing = { amountCents: 100, final: false, networkTransactionId: randomUUID() };
    const cleared = await tell('clearing', A, clearing);
    assert.deepEqual([cleared.status, Object.keys(cleared.json)], [200, ['transactionId']]);
    assert.equal((await tell('clearing', A, clearing)).text, cleared.text);
    const reversal = { amountCents: 50, networkTransactionId: randomUUID() };
    const reversed = await tell('reversal', A, reversal);
    assert.deepEqual([reversed.status, reversed.json], [200, { authorizationId }]);
    assert.equal((await tell('reversal', A, reversal)).text, reversed.text);
    assert.deepEqual(await card(), [900, 750]);
    assert.equal((await tell('expiry', A)).status, 200);
    assert.deepEqual(await card(), [900, 900]);
    assert.equal((await read(authorizationId)).status, 'closed');
  });

  for (const { when, isAskedFirst } of [
    { when: 'after its request', isAskedFirst: true },
    { when: 'before its request', isAskedFirst: false },
  ]) {
    it(`takes from the hold what a person books of a clearing that can't be read, told ${when}`, async () => {
      const [A, element] = [randomUUID(), randomUUID()];
      if (isAskedFirst) await ask(300, { networkTransactionId: A });
      const foreign = { currency: 'EUR', amountCents: 100, final: false, networkTransactionId: element };
      assert.equal((await tell('clearing', A, foreign)).status, 202);
      const operate = operateIn(environmentOf(stack.config));
      const flags = ['--type', 'purchase', '--amount', '110', '--reason', 'EUR 1.00, ticket 1'];
      const { code, err } = await operate('transaction', 'book', element, ...flags);
      assert.equal(code, 0, err);
      if (!isAskedFirst) await ask(300, { networkTransactionId: A });
      assert.deepEqual(await card(), [890, 700]);
      assert.equal((await tell('clearing', A, { amountCents: 90, final: false })).status, 200);
      assert.deepEqual(await card(), [800, 700]);
      assert.equal((await tell('reversal', A)).status, 200);
      assert.deepEqual(await card(), [800, 800]);
    });
  }

  for (const { verb, flags, left } of [
    { verb: 'book', flags: ['--type', 'purchase', '--amount', '110'], left: 890 },
    { verb: 'dismiss', flags: [], left: 1_000 },
  ])
    for (const { when, isAskedFirst } of [
      { when: 'before', isAskedFirst: true },
      { when: 'after', isAskedFirst: false },
    ]) {
      it(`holds nothing after an unreadable last clearing whose request comes late, ${when} "${verb}"`, async () => {
        const [A, element] = [randomUUID(), randomUUID()];
        const foreign = { currency: 'EUR', amountCents: 100, networkTransactionId: element };
        assert.equal((await tell('clearing', A, foreign)).status, 202);
        if (isAskedFirst) await ask(300, { networkTransactionId: A });
        const operate = operateIn(environmentOf(stack.config));
        const { code, err } = await operate('transaction', verb, element, ...flags, '--reason', 'ticket 1');
        assert.equal(code, 0, err);
        if (!isAskedFirst) await ask(300, { networkTransactionId: A });
        assert.deepEqual(await card(), [left, left]);
        assert.equal((await tell('clearing', A, { amountCents: 90 })).status, 200);
        assert.deepEqual(await card(), [left - 90, left - 90]);
      });
    }

  it('keeps a reversal that comes before its request, and applies it once that has arrived', async () => {
    const A = randomUUID();
    const reversal = { networkTransactionId: randomUUID() };
    const kept = await tell('reversal', A, reversal);
    assert.deepEqual([kept.status, kept.json.status], [202, 'kept']);
    assert.equal(await whyWaiting(stack, reversal.networkTransactionId), 'authorization_unknown');
    const { authorizationId } = (await ask(300, { networkTransactionId: A })).json;
    // A worker tries it again, here without waiting for the pause.
    await asOwner(stack, 'UPDATE network_inbox SET retry_after = now() WHERE id = $1', [A]);
    await until('it is applied', async () => (await read(authorizationId)).status === 'reversed');
    assert.deepEqual(await card(), [1_000, 1_000]);
    assert.equal(await whyWaiting(stack, reversal.networkTransactionId), null);
  });

  it('applies a reversal that was kept when the network repeats it, and answers as if it had not been', async () => {
    const A = randomUUID();
    const reversal = { networkTransactionId: randomUUID() };
    assert.equal((await tell('reversal', A, reversal)).status, 202);
    const { authorizationId } = (await ask(300, { networkTransactionId: A })).json;
    for (let repeated = 0; repeated < 2; repeated++) {
      const { status, json } = await tell('reversal', A, reversal);
      assert.deepEqual([status, json.authorizationId], [200, authorizationId]);
    }
    assert.equal((await read(authorizationId)).status, 'reversed');
    assert.equal(await whyWaiting(stack, reversal.networkTransactionId), null);
  });

  it('refuses what the network can not mean', async () => {
    expectError(await ask(5, { networkCardId: 'nobody' }), 'card_not_found');
    expectError(await ask(-1), 'validation_failed', ['amountCents']);
    expectError(await ask(5, { type: 'clearing' }), 'validation_failed', ['type']);
    const body = JSON.stringify({ networkCardId });
    const forged = await sendAsNetwork(stack, '/network/authorizations', body, 'forged');
    expectError(forged, 'invalid_api_key');
    const A = randomUUID();
    await ask(10, { networkTransactionId: A });
    expectError(await ask(10, { networkAuthorizationId: A }), 'idempotency_conflict');
  });

  it('answers 503 within its time if the card is locked, and holds nothing', async () => {
    await using locker = await connectTo(ownerUrlOf(stack.config.databaseUrl));
    await locker.query('BEGIN');
    await locker.query('SELECT FROM card WHERE id = $1 FOR UPDATE', [cardId]);
    assert.equal((await ask(5)).status, 503);
    assert.deepEqual(await card(), [1_000, 1_000]);
  });
});

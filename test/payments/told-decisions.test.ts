import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { keptRows } from '../support/api/kept-transactions.ts';
import { networkIdOf, sendAsNetwork } from '../support/api/network-events.ts';
import { createCard } from '../support/cards.ts';
import { assertLedgerClean, balanceOf, fundedPartner } from '../support/money.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

const live = { mode: 'live' } as const;
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();

describe('what the issuer tells about a request', () => {
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
  const ask = async (amountCents: number, T: string, A: string, type = 'authorization') => {
    const about = { networkTransactionId: T, networkAuthorizationId: A };
    const { status, json } = await post('/network/authorizations', { type, amountCents, ...about });
    assert.equal(status, 200, JSON.stringify(json));
    return json;
  };
  const tell = async (type: string, T: string, A: string | null, more: object = {}) => {
    const about = { networkTransactionId: T, networkAuthorizationId: A };
    const { status, json } = await post('/network/transactions', { type, ...about, ...more });
    return { ...json, status };
  };
  const read = async (id: string) => (await partner.call('GET', `/authorizations/${id}`, live)).json;
  const list = async (of: 'authorizations' | 'transactions') =>
    (await partner.call('GET', `/cards/${cardId}/${of}`, live)).json.data;
  const card = async () => {
    const { json } = await partner.call('GET', `/cards/${cardId}`, live);
    return [json.balance, json.available_balance];
  };
  const eventsOf = async () => {
    const rows = await asOwner<{ type: string }>(
      stack,
      `SELECT type FROM event WHERE card_id = $1 AND type ~ 'authorization|transaction' ORDER BY id`,
      [cardId],
    );
    return rows.map(({ type }) => type.slice('card.'.length));
  };
  const prepaid = async () => (await balanceOf(partner, 'live'))[2] ?? 0;

  it('changes nothing but the expiry if it is our own approval, however often it is told', async () => {
    const [A, T] = [randomUUID(), randomUUID()];
    const { authorizationId } = await ask(300, T, A);
    const expiresAt = inDays(3);
    const told = await Promise.all(
      Array.from({ length: 5 }, () => tell('approval', T, A, { amountCents: 300, expiresAt })),
    );
    for (const one of told) assert.deepEqual(one, { status: 200, authorizationId });
    const { amount, held_amount, expires_at, requests } = await read(authorizationId);
    assert.deepEqual([amount, held_amount, expires_at, requests.length], [300, 300, expiresAt, 1]);
    assert.deepEqual(await card(), [1_000, 700]);
    assert.deepEqual(await eventsOf(), ['authorization.created']);
    await tell('approval', T, A, { amountCents: 300 });
    assert.equal((await read(authorizationId)).expires_at, expiresAt, 'it says nothing about the expiry');
  });

  it('changes nothing if it is our own decline', async () => {
    const [A, T] = [randomUUID(), randomUUID()];
    const { authorizationId } = await ask(1_001, T, A);
    const before = await prepaid();
    assert.deepEqual(await tell('decline', T, A, { amountCents: 1_001 }), {
      status: 200,
      ...(await declined()),
    });
    assert.equal((await list('transactions')).length, 1);
    assert.equal(await prepaid(), before);
    assert.equal((await read(authorizationId)).status, 'declined');

    async function declined() {
      const [{ id }] = await list('transactions');
      return { transactionId: id };
    }
  });

  it('is an authorization if the issuer approved without us, whatever our rules say', async () => {
    await partner.call('POST', `/cards/${cardId}/freeze`, live);
    const [A, T, expiresAt] = [randomUUID(), randomUUID(), inDays(2)];
    const approval = { amountCents: 1_500, expiresAt, merchant: { name: 'Ferry', country: 'NO' } };
    const { authorizationId } = await tell('approval', T, A, approval);
    const made = await read(authorizationId);
    assert.deepEqual(
      [made.status, made.amount, made.held_amount, made.merchant.name, made.expires_at],
      ['pending', 1_500, 1_000, 'Ferry', expiresAt],
    );
    assert.deepEqual(await card(), [1_000, 0]);
    await tell('approval', T, A, approval);
    const more = await tell('approval', randomUUID(), A, { amountCents: 10 });
    assert.equal(more.authorizationId, authorizationId);
    const { amount, held_amount, requests } = await read(authorizationId);
    assert.deepEqual([amount, held_amount, requests.length], [1_510, 1_000, 2]);
    assert.deepEqual(await eventsOf(), ['authorization.created', 'authorization.updated']);
    await tell('reversal', randomUUID(), A, { amountCents: 300 });
    assert.deepEqual(await card(), [1_000, 0], 'what it never held is given back first');
    await tell('reversal', randomUUID(), A, { amountCents: 300 });
    assert.deepEqual(await card(), [1_000, 90]);
    await tell('clearing', randomUUID(), A, { amountCents: 910 });
    assert.equal((await read(authorizationId)).status, 'closed');
    assert.deepEqual(await card(), [90, 90]);
  });

  it('is pending even if the card had nothing to hold, until it ends', async () => {
    await tell('approval', randomUUID(), randomUUID(), { amountCents: 1_000 });
    const A = randomUUID();
    const { authorizationId } = await tell('approval', randomUUID(), A, { amountCents: 50 });
    const made = await read(authorizationId);
    assert.deepEqual([made.status, made.amount, made.held_amount], ['pending', 50, 0]);
    await tell('clearing', randomUUID(), A, { amountCents: 20, final: false });
    assert.equal((await read(authorizationId)).status, 'pending');
    await tell('reversal', randomUUID(), A);
    const { status, amount, settled_amount } = await read(authorizationId);
    assert.deepEqual([status, amount, settled_amount], ['closed', 20, 20]);
  });

  it('makes a declined authorization pending if the issuer approved it after all, and its decline stays', async () => {
    const [A, T] = [randomUUID(), randomUUID()];
    const { authorizationId } = await ask(1_200, T, A);
    const approval = { amountCents: 1_200 };
    assert.deepEqual(await tell('approval', T, A, approval), { status: 200, authorizationId });
    assert.deepEqual(await tell('approval', T, A, approval), { status: 200, authorizationId });
    const { status, amount, held_amount, decline_reason, requests, expires_at } = await read(authorizationId);
    assert.deepEqual([status, amount, held_amount, decline_reason], ['pending', 1_200, 1_000, null]);
    assert.deepEqual(
      requests.map(({ approved, decline_reason }: never) => [approved, decline_reason]),
      [[true, null]],
    );
    assert.ok(Date.parse(expires_at) > Date.now());
    assert.deepEqual(await eventsOf(), [
      'authorization.created',
      'transaction.created',
      'authorization.updated',
    ]);
    assert.equal((await list('transactions')).length, 1);
    // And declined in the end: there is one decline already.
    await tell('decline', T, A, { amountCents: 1_200 });
    assert.equal((await read(authorizationId)).status, 'reversed');
    assert.equal((await list('transactions')).length, 1);
    assert.deepEqual(await card(), [1_000, 1_000]);
  });

  it('shows a declined increment as approved if the issuer approved it after all', async () => {
    const [A, T] = [randomUUID(), randomUUID()];
    const { authorizationId } = await ask(600, randomUUID(), A);
    await ask(500, T, A, 'increment');
    await tell('approval', T, A, { amountCents: 500 });
    const { amount, held_amount, requests } = await read(authorizationId);
    assert.deepEqual([amount, held_amount], [1_100, 1_000]);
    assert.deepEqual(
      requests.map(({ type, approved }: never) => [type, approved]),
      [
        ['authorization', true],
        ['increment', true],
      ],
    );
  });

  it('is a decline with its fee if the issuer declined without us, once', async () => {
    const [A, T] = [randomUUID(), randomUUID()];
    const before = await prepaid();
    const told = await Promise.all(
      Array.from({ length: 5 }, () => tell('decline', T, A, { amountCents: 70, merchant: { name: 'Café' } })),
    );
    assert.equal(new Set(told.map(({ transactionId }) => transactionId)).size, 1);
    const [{ type, decline_reason, authorization_id, amount, merchant, fees }, ...others] =
      await list('transactions');
    assert.deepEqual(
      [type, decline_reason, authorization_id, amount, merchant.name, others.length],
      ['decline', 'declined_by_network', null, 70, 'Café', 0],
    );
    assert.equal(await prepaid(), before - fees[0].amount);
    assert.equal((await tell('decline', randomUUID(), null, { amountCents: 5 })).status, 200);
    const made = await ask(100, randomUUID(), A);
    assert.equal(made.approved, true);
    await tell('decline', randomUUID(), A, { amountCents: 30 });
    const { amount: total, requests } = await read(made.authorizationId);
    assert.deepEqual([total, requests[1].amount, requests[1].approved], [100, 30, false]);
    assert.equal((await list('transactions'))[0].authorization_id, made.authorizationId);
  });

  it('gives back what a request holds that we approved and the issuer declined, and records the decline once', async () => {
    const [A, T] = [randomUUID(), randomUUID()];
    const { authorizationId } = await ask(300, randomUUID(), A);
    await ask(200, T, A, 'increment');
    for (let told = 0; told < 2; told++) await tell('decline', T, A, { amountCents: 200 });
    const { status, amount, held_amount, requests } = await read(authorizationId);
    assert.deepEqual(
      [status, amount, held_amount, requests[1].decline_reason],
      ['pending', 300, 300, 'declined_by_network'],
    );
    const transactions = await list('transactions');
    assert.deepEqual(
      transactions.map(({ type, amount, authorization_id }: never) => [type, amount, authorization_id]),
      [['decline', 200, authorizationId]],
    );
    assert.equal((await ask(200, T, A, 'increment')).declineReason, 'declined_by_network');
    assert.deepEqual(await card(), [1_000, 700]);
  });

  it('answers a question that arrives after the decision was told as it was told', async () => {
    const [A, T] = [randomUUID(), randomUUID()];
    const { authorizationId } = await tell('approval', T, A, { amountCents: 300 });
    assert.deepEqual(await ask(300, T, A), { approved: true, declineReason: null, authorizationId });
    const declined = randomUUID();
    await tell('decline', declined, randomUUID(), { amountCents: 30 });
    assert.equal((await ask(30, declined, randomUUID())).declineReason, 'declined_by_network');
    assert.deepEqual(await card(), [1_000, 700]);
  });

  it('is taken once if it arrives together with the question, in whatever order', async () => {
    for (let round = 0; round < 5; round++) {
      const [A, T, declined] = [randomUUID(), randomUUID(), randomUUID()];
      await Promise.all([
        ask(30, T, A),
        tell('approval', T, A, { amountCents: 30 }),
        ask(20, declined, randomUUID()),
        tell('decline', declined, randomUUID(), { amountCents: 20 }),
      ]);
    }
    assert.deepEqual(await card(), [1_000, 850]);
    const declines = await list('transactions');
    assert.equal(declines.length, 5);
  });

  it('is matched by its place if it names no request', async () => {
    const A = randomUUID();
    const { authorizationId } = await ask(100, randomUUID(), A);
    await ask(2_000, randomUUID(), A, 'increment');
    await ask(50, randomUUID(), A, 'increment');
    const [first, second, third, fourth] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
    const tellAll = async () => {
      await tell('approval', first, A, { amountCents: 100, approvalNumber: 1 });
      await tell('decline', second, A, { amountCents: 2_000, requestNumber: 1 });
      await tell('approval', third, A, { amountCents: 50, approvalNumber: 1 });
      await tell('approval', fourth, A, { amountCents: 25, approvalNumber: 1 });
    };
    await tellAll();
    await tellAll();
    const { amount, held_amount, requests } = await read(authorizationId);
    assert.deepEqual([amount, held_amount, requests.length], [175, 175, 4]);
    assert.equal((await list('transactions')).length, 1);
    // The issuer declined the third one in the end.
    const last = randomUUID();
    for (let told = 0; told < 2; told++) {
      await tell('decline', last, A, { amountCents: 50, requestNumber: 1 });
    }
    assert.deepEqual(await card(), [1_000, 875]);
    assert.equal((await list('transactions')).length, 2);
  });

  for (const [standIn, what] of [
    [30, 'another amount'],
    [50, 'the same amount'],
  ] as const) {
    it(`is booked beside a later request of ours that was told after it, with ${what}`, async () => {
      const A = randomUUID();
      const { authorizationId } = await ask(100, randomUUID(), A);
      await ask(50, randomUUID(), A, 'increment');
      // The issuer approved one by itself before it asked about ours.
      await tell('approval', randomUUID(), A, { amountCents: 100, approvalNumber: 1 });
      await tell('approval', randomUUID(), A, { amountCents: standIn, approvalNumber: 1 });
      const approvalNumber = standIn === 50 ? 2 : 1;
      await tell('approval', randomUUID(), A, { amountCents: 50, approvalNumber });
      const { amount, held_amount, requests } = await read(authorizationId);
      assert.deepEqual([amount, held_amount, requests.length], [150 + standIn, 150 + standIn, 3]);
    });
  }

  it('gives back what we approved, though an advice was declined before it', async () => {
    for (const advised of [40, 50]) {
      const A = randomUUID();
      const { authorizationId } = await ask(100, randomUUID(), A);
      await tell('decline', randomUUID(), A, { amountCents: advised, requestNumber: 1 });
      await ask(50, randomUUID(), A, 'increment');
      const requestNumber = advised === 50 ? 2 : 1;
      await tell('decline', randomUUID(), A, { amountCents: 50, requestNumber });
      assert.equal((await read(authorizationId)).held_amount, 100);
      const declines = (await list('transactions')).filter(
        ({ authorization_id: id }: { authorization_id: string }) => id === authorizationId,
      );
      assert.deepEqual(
        declines.map(({ amount }: { amount: number }) => amount),
        [50, advised],
      );
    }
  });

  it('is the decline of a request that an authorization has no more room for, and is charged once', async () => {
    const A = randomUUID();
    const { authorizationId } = await ask(1, randomUUID(), A);
    for (let n = 2; n <= 100; n++) await ask(1, randomUUID(), A, 'increment');
    for (const amount of [1, 7, 7]) {
      const { declineReason } = await ask(amount, randomUUID(), A, 'increment');
      assert.equal(declineReason, 'authorization_not_pending');
    }
    const before = await prepaid();
    const tellAll = async () => {
      await tell('decline', randomUUID(), A, { amountCents: 1, requestNumber: 101 });
      await tell('decline', randomUUID(), A, { amountCents: 7, requestNumber: 1 });
      await tell('decline', randomUUID(), A, { amountCents: 7, requestNumber: 2 });
    };
    await tellAll();
    await tellAll();
    assert.equal(await prepaid(), before);
    assert.equal((await list('transactions')).length, 3);
    // One that the issuer declined by itself is news.
    await tell('decline', randomUUID(), A, { amountCents: 7, requestNumber: 3 });
    assert.equal((await list('transactions')).length, 4);
    const { held_amount, requests } = await read(authorizationId);
    assert.deepEqual([held_amount, requests.length], [100, 100]);
  });

  it('is recorded with its own amount, if it was declined before we knew the authorization and is told after a later request', async () => {
    const A = randomUUID();
    await ask(2_000, randomUUID(), A);
    await tell('decline', randomUUID(), A, { amountCents: 300, requestNumber: 1 });
    await tell('decline', randomUUID(), A, { amountCents: 2_000, requestNumber: 1 });
    const declines = await list('transactions');
    assert.deepEqual(
      declines.map(({ type, amount }: { type: string; amount: number }) => [type, amount]),
      [
        ['decline', 300],
        ['decline', 2_000],
      ],
    );
  });

  it('sets the total of an authorization, up or down', async () => {
    const A = randomUUID();
    const { authorizationId } = await ask(100, randomUUID(), A);
    const raised = randomUUID();
    for (let told = 0; told < 2; told++) await tell('total', raised, A, { amountCents: 1_400 });
    const more = await read(authorizationId);
    assert.deepEqual([more.amount, more.held_amount, more.requests.length], [1_400, 1_000, 1]);
    await tell('total', randomUUID(), A, { amountCents: 40 });
    const less = await read(authorizationId);
    assert.deepEqual([less.amount, less.held_amount, less.status], [40, 40, 'pending']);
    await tell('expiry', randomUUID(), A);
    await tell('total', randomUUID(), A, { amountCents: 90 });
    assert.equal((await read(authorizationId)).status, 'expired');
    assert.deepEqual(await card(), [1_000, 1_000]);
  });

  it('keeps what it can not book: a total before its authorization, and an approval on an unknown card', async () => {
    const [A, T] = [randomUUID(), randomUUID()];
    assert.equal((await tell('total', T, A, { amountCents: 70 })).status, 202);
    assert.equal((await keptRows(stack, T))[0]?.reason, 'authorization_unknown');
    const { authorizationId } = await tell('approval', randomUUID(), A, { amountCents: 100 });
    await asOwner(stack, `UPDATE network_message SET retry_after = now() WHERE message_id = $1`, [T]);
    await until('the total is taken', async () => (await read(authorizationId)).amount === 70);
    const unknown = randomUUID();
    const nobody = { amountCents: 5, networkCardId: 'nobody' };
    assert.equal((await tell('approval', unknown, randomUUID(), nobody)).status, 202);
    assert.equal((await keptRows(stack, unknown))[0]?.reason, 'card_unknown');
  });

  it('links clearings that were told before their authorization', async () => {
    const A = randomUUID();
    await tell('clearing', randomUUID(), A, { amountCents: 200, final: false });
    const { authorizationId } = await tell('approval', randomUUID(), A, { amountCents: 300 });
    const { held_amount, settled_amount } = await read(authorizationId);
    assert.deepEqual([held_amount, settled_amount], [100, 200]);
    assert.equal((await list('transactions'))[0].authorization_id, authorizationId);
  });

  it('releases the rest if a clearing turns out to be the last one', async () => {
    const [A, T] = [randomUUID(), randomUUID()];
    const { authorizationId } = await ask(300, randomUUID(), A);
    const first = await tell('clearing', T, A, { amountCents: 100, final: false });
    for (let told = 0; told < 2; told++) {
      assert.deepEqual(await tell('clearing', T, A, { amountCents: 100 }), first);
    }
    assert.deepEqual(await tell('clearing', T, A, { amountCents: 100, final: false }), first);
    const { status, amount, held_amount } = await read(authorizationId);
    assert.deepEqual([status, amount, held_amount], ['closed', 300, 0]);
    assert.deepEqual(await card(), [900, 900]);
    assert.equal((await list('transactions')).length, 1);
  });

  it('expires when the issuer says', async () => {
    const [A, T] = [randomUUID(), randomUUID()];
    const { authorizationId } = await ask(300, T, A);
    await tell('approval', T, A, { amountCents: 300, expiresAt: inDays(-1) });
    await until('it is expired', async () => (await read(authorizationId)).status === 'expired');
    assert.deepEqual(await card(), [1_000, 1_000]);
  });

  it('is the purchase that was booked before, if a clearing without an authorization has its id', async () => {
    const T = randomUUID();
    const booked = await tellPurchase(T, 300);
    for (let again = 0; again < 2; again++)
      assert.deepEqual(await tell('clearing', T, null, { amountCents: 300 }), booked);
    assert.deepEqual(await card(), [700, 700]);
    assert.equal((await list('transactions')).length, 1);
    assert.equal((await tell('clearing', T, null, { amountCents: 301 })).status, 202, 'another amount');
    // A purchase that was declined here moved nothing, so it is not what the clearing says.
    const declined = randomUUID();
    await tellPurchase(declined, 701);
    assert.equal((await tell('clearing', declined, null, { amountCents: 701 })).status, 202);
    for (const id of [T, declined]) assert.equal((await keptRows(stack, id))[0]?.reason, 'id_conflict');

    async function tellPurchase(networkTransactionId: string, amountCents: number) {
      const purchase = { type: 'purchase', networkTransactionId, amountCents };
      const { status, json } = await post('/network/transactions', purchase);
      return { ...json, status };
    }
  });

  it('is refused under the id of something else', async () => {
    const [A, T] = [randomUUID(), randomUUID()];
    await tell('clearing', T, A, { amountCents: 5 });
    assert.equal((await tell('approval', T, A, { amountCents: 5 })).status, 202);
    assert.equal((await keptRows(stack, T))[0]?.reason, 'id_conflict');
  });
});

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { expectError } from '../support/api/answers.ts';
import { createCard } from '../support/cards.ts';
import { TEST_TRON } from '../support/deposits/seed-deposits.ts';
import { balanceOf, fundedPartner } from '../support/money.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { testServers } from '../support/servers.ts';
import { startTcpProxy, type TcpProxy } from '../support/sockets.ts';
import { startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

let postgres: TcpProxy;
let temporal: TcpProxy;
let stack: TestStack;
let partner: TestPartner;
before(async () => {
  const { address, namespace } = testServers().temporal;
  temporal = await startTcpProxy(address);
  const url = new URL(await createTestDatabase());
  postgres = await startTcpProxy(url.host);
  url.host = postgres.address;
  stack = await startTestStack(
    {
      databaseUrl: url.href,
      temporal: { connectionOptions: { address: temporal.address }, namespace },
      // Longer than the test may take: an answer that comes at all then comes before it.
      cardCreationWaitMs: 120_000,
      tron: TEST_TRON,
    },
    { worker: false },
  );
});
beforeEach(async () => {
  partner = await fundedPartner(stack, 10_000);
});
after(async () => {
  await stack.stop();
  await temporal.cut();
  await postgres.cut();
});

describe('the API while PostgreSQL is away', () => {
  it('answers 503 on every route, keeps nothing under a key, and recovers when it is back', async () => {
    assert.deepEqual(await balanceOf(partner), [10_000, 0, 10_000]);
    await postgres.cut();
    const create = () => createCard(partner, { amount: 1_000, external_ref: 'r' }, { idempotencyKey: 'k' });
    for (const path of [
      '/balance',
      '/products',
      '/cards',
      '/funding/deposits',
      `/cards/card_${'0'.repeat(26)}`,
    ]) {
      expectError(await partner.call('GET', path), 'unavailable');
    }
    expectError(await create(), 'unavailable');
    for (const [path, body] of [
      ['/test/credit', { amount: 1 }],
      ['/quotes', { type: 'card_issue', amount: 1 }],
    ] as const)
      expectError(await partner.call('POST', path, { body, idempotencyKey: 'c' }), 'unavailable');
    // A 401 would say that the key is no good.
    const stranger = await partner.call('GET', '/ping', { mode: 'live' });
    expectError(stranger, 'unavailable');
    await postgres.restore();

    const answer = await create();
    assert.equal(answer.status, 201, answer.text);
    assert.equal(answer.headers.get('idempotent-replayed'), null);
    assert.deepEqual(await balanceOf(partner), [8_850, 0, 8_850]);
  });
});

describe('the API while Temporal is away', () => {
  const create = (idempotencyKey: string) =>
    createCard(partner, { amount: 1_000, external_ref: idempotencyKey }, { mode: 'live', idempotencyKey });

  it('serves all of test mode, which starts no workflows', async () => {
    await temporal.cut();
    const post = async (path: string, body?: object) => {
      const answer = await partner.call('POST', path, { body, idempotencyKey: randomUUID() });
      assert.ok(answer.status === 200 || answer.status === 201, `${path}: ${answer.text}`);
      return answer.json;
    };
    assert.equal((await post('/test/credit', { amount: 5_000 })).available, 15_000);
    const { id } = await post('/cards', { amount: 1_000, external_ref: 'sandbox' });
    assert.equal((await post(`/cards/${id}/topups`, { amount: 500 })).card_balance, 1_500);
    assert.equal((await post(`/cards/${id}/freeze`)).status, 'frozen');
    assert.equal((await post(`/cards/${id}/unfreeze`)).status, 'active');
    const simulate = `/test/cards/${id}/simulate-transaction`;
    assert.equal((await post(simulate, { type: 'purchase', amount: 300 })).card_balance_after, 1_200);
    const blocked = await post(`/cards/${id}/block`);
    assert.deepEqual([blocked.status, blocked.balance], ['blocked', 0]);
    // Fees: 100 and 50 of the issuance, 50 of the top-up, 10 and half a percent of the purchase.
    assert.deepEqual(await balanceOf(partner), [14_488, 0, 14_488]);
    await temporal.restore();
  });

  it('gives out a deposit address, although no node of the chain answers either', async () => {
    await temporal.cut();
    const { status, json, text } = await partner.call('POST', '/funding/deposit-address', {
      ...{ mode: 'live', body: { amount: 2_500 }, idempotencyKey: randomUUID() },
    });
    assert.deepEqual([status, json.status], [201, 'awaiting_payment'], text);
    const { json: list } = await partner.call('GET', '/funding/deposits', { mode: 'live' });
    assert.deepEqual(list.data, [json]);
    await temporal.restore();
  });

  it('answers a live POST /cards and its retry with 503, and a later retry with the outcome', async () => {
    await temporal.cut();
    expectError(await create('r-1'), 'unavailable');
    expectError(await create('r-1'), 'unavailable');
    for (const path of ['/ping', '/balance', '/products', '/cards']) {
      assert.equal((await partner.call('GET', path, { mode: 'live' })).status, 200, path);
    }
    const body = { amount: 2_000, external_ref: 'other' };
    expectError(
      await partner.call('POST', '/cards', { mode: 'live', body, idempotencyKey: 'r-1' }),
      'idempotency_conflict',
    );
    await temporal.restore();
    await stack.startWorker();

    // The worker's sweep may have taken the claim up already: then this is the replay of what came of it.
    const answer = await until('it has an outcome', async () => {
      const retried = await create('r-1');
      return retried.status !== 503 && retried.status !== 409 && retried;
    });
    assert.equal(answer.status, 201, answer.text);
    assert.equal(answer.json.external_ref, 'r-1');
    const again = await create('r-1');
    assert.equal(again.text, answer.text);
    assert.equal(again.headers.get('idempotent-replayed'), 'true');

    const cards = await partner.call('GET', '/cards', { mode: 'live' });
    assert.deepEqual(cards.json.data, [answer.json]);
    assert.deepEqual(await balanceOf(partner, 'live'), [8_850, 0, 8_850]);
  });
});

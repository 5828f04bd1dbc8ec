import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { expectError } from '../../support/api/answers.ts';
import { createCard } from '../../support/cards.ts';
import { TEST_TRON } from '../../support/deposits/seed-deposits.ts';
import { balanceOf, fundedPartner } from '../../support/money.ts';
import { startTcpProxy, type TcpProxy } from '../../support/sockets.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { testTemporal } from '../../support/temporal.ts';

describe('the API while Temporal is away', () => {
  let proxy: TcpProxy;
  let stack: TestStack;
  let partner: TestPartner;

  before(async () => {
    const { address, namespace } = await testTemporal();
    proxy = await startTcpProxy(address);
    // Longer than the test may take: an answer that comes at all then comes before it.
    const cardCreationWaitMs = 120_000;
    stack = await startTestStack(
      {
        ...{ temporal: { connectionOptions: { address: proxy.address }, namespace }, cardCreationWaitMs },
        tron: TEST_TRON,
      },
      { worker: false },
    );
    partner = await fundedPartner(stack, 10_000);
  });
  after(async () => {
    await stack.stop();
    await proxy.cut();
  });

  const create = (idempotencyKey: string) =>
    createCard(partner, { amount: 1_000, external_ref: idempotencyKey }, { mode: 'live', idempotencyKey });

  it('serves all of test mode, which starts no workflows', async () => {
    await proxy.cut();
    const post = async (path: string, body?: object) => {
      const answer = await partner.call('POST', path, { body, idempotencyKey: randomUUID() });
      assert.ok(answer.status === 200 || answer.status === 201, `${path}: ${answer.text}`);
      return answer.json;
    };
    assert.equal((await post('/test/credit', { amount: 5_000 })).available, 15_000);
    const { id } = await post('/cards', { amount: 1_000, external_ref: 'sandbox' });
    assert.equal((await post(`/cards/${id}/topups`, { amount: 500 })).card_balance, 1_500);
    for (let turn = 0; turn < 20; turn++) {
      const verb = turn % 2 === 0 ? 'freeze' : 'unfreeze';
      const changed = await partner.call('POST', `/cards/${id}/${verb}`);
      assert.deepEqual([changed.status, changed.json.status], [200, turn % 2 === 0 ? 'frozen' : 'active']);
    }
    const simulate = `/test/cards/${id}/simulate-transaction`;
    assert.equal((await post(simulate, { type: 'purchase', amount: 300 })).card_balance_after, 1_200);
    const blocked = await post(`/cards/${id}/block`);
    assert.deepEqual([blocked.status, blocked.balance], ['blocked', 0]);
    // Fees: 100 and 50 of the issuance, 50 of the top-up, 10 and half a percent of the purchase.
    assert.deepEqual(await balanceOf(partner), [14_488, 0, 14_488]);
    await proxy.restore();
  });

  it('gives out a deposit address, although no node of the chain answers either', async () => {
    await proxy.cut();
    const { status, json, text } = await partner.call('POST', '/funding/deposit-address', {
      ...{ mode: 'live', body: { amount: 2_500 }, idempotencyKey: randomUUID() },
    });
    assert.deepEqual([status, json.status], [201, 'awaiting_payment'], text);
    const { json: list } = await partner.call('GET', '/funding/deposits', { mode: 'live' });
    assert.deepEqual(list.data, [json]);
    await proxy.restore();
  });

  it('answers a live POST /cards and its retry with 503, and a later retry with the outcome', async () => {
    await proxy.cut();
    expectError(await create('r-1'), 'unavailable');
    expectError(await create('r-1'), 'unavailable');
    for (const path of ['/ping', '/balance', '/products', '/cards']) {
      assert.equal((await partner.call('GET', path, { mode: 'live' })).status, 200, path);
    }
    expectError(
      await partner.call('POST', '/cards', {
        mode: 'live',
        body: { amount: 2_000, external_ref: 'other' },
        idempotencyKey: 'r-1',
      }),
      'idempotency_conflict',
    );
    await proxy.restore();
    await stack.startWorker();

    // The worker's sweep may have taken the claim up already: then this is the replay of what came of it.
    let answer = await create('r-1');
    while (answer.status === 503 || answer.status === 409) answer = await create('r-1');
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

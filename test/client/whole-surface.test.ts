import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { inspect } from 'node:util';
import { updatePartner } from '../../accounts/partners.ts';
import { CardIssuing, CardIssuingError, type ErrorDetails, type Topup } from '../../client/index.ts';
import type { Mode } from '../../domain/mode.ts';
import { FUNDS_CENTS, fundedPartner } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import { startLossyProxy } from '../support/sockets.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';
import { type Receiver, startReceiver } from '../support/webhooks/receiver.ts';

/** Each method's request and response are in test/unit/client/operations.test.ts. */
describe('the TypeScript client, used with the whole service,', () => {
  let stack: TestStack;
  let baseUrl: string;
  let partner: TestPartner;
  let receiver: Receiver;

  const clientOf = (mode: Mode, at = baseUrl) => new CardIssuing({ apiKey: partner.keys[mode], baseUrl: at });
  const ref = () => randomUUID();
  const refused = async (call: PromiseLike<unknown>, expected: Partial<ErrorDetails>) => {
    const error = await call.then(
      () => assert.fail('the call succeeded'),
      (thrown) => thrown,
    );
    assert.ok(error instanceof CardIssuingError, inspect(error));
    assert.match(error.requestId ?? '', /^req_/);
    for (const [name, value] of Object.entries(expected))
      assert.deepEqual(error[name as keyof ErrorDetails], value, name);
    return error;
  };

  before(async () => {
    stack = await sharedStack();
    baseUrl = `http://${stack.config.host}:${stack.config.port}/v1`;
    partner = await fundedPartner(stack);
    await updatePartner(stack.operator, partner.id, { secureDetailsEnabled: true });
    receiver = await startReceiver();
  });
  after(async () => {
    await receiver?.stop();
  });

  for (const mode of ['test', 'live'] as const) {
    it(`issues, loads, freezes and closes a ${mode} card, whose webhooks it verifies`, async () => {
      const client = clientOf(mode);
      const endpoint = await client.webhookEndpoint.set({ url: receiver.url });
      const secret = endpoint.secret ?? assert.fail('the first response has the secret');
      assert.equal(client.mode, mode);
      assert.equal((await client.account.ping()).partner_id, partner.id);
      const [product] = (await client.products.list()).data;
      const price = await client.quotes.create({ type: 'card_issue', amount: 5_000 });
      const { product_code } = product ?? assert.fail('there is a product');
      const card = await client.cards.create({ amount: 5_000, external_ref: ref(), product_code });
      assert.deepEqual([card.status, card.balance, card.lastResponse.status], ['active', 5_000, 201]);
      assert.equal((await client.balance.get()).total, FUNDS_CENTS - price.total_debited);

      const topup = await client.topups.create(card.id, { amount: 2_500 });
      assert.deepEqual(await collect(client.topups.list(card.id)), [topup]);
      const withdrawal = await client.withdrawals.create(card.id, { amount: 1_000 });
      assert.deepEqual(await client.withdrawals.get(withdrawal.id), withdrawal);
      const changed = await client.cards.update(card.id, { card_name: 'Ads', metadata: { order: '4711' } });
      assert.deepEqual([changed.card_name, changed.metadata], ['Ads', { order: '4711' }]);
      assert.equal((await client.cards.freeze(card.id)).status, 'frozen');
      await refused(client.cards.freeze(card.id), { status: 409, code: 'invalid_state', type: 'conflict' });
      assert.equal((await client.cards.unfreeze(card.id)).status, 'active');
      assert.match((await client.cards.getSecureDetails(card.id)).pan, /^\d{16}$/);
      assert.equal((await client.cards.block(card.id)).status, 'blocked');

      const changes = await collect(client.balanceTransactions.list({ limit: 1 }));
      const { total } = await client.balance.get();
      assert.equal(
        changes.reduce((sum, { amount }) => sum + amount, 0),
        total,
      );

      const ofCard = ['card.blocked', 'card.frozen', 'card.issued', 'card.unfrozen', 'card.updated'];
      const wanted = [...ofCard, 'topup.succeeded', 'withdrawal.succeeded'];
      const verified = await until('every webhook arrived', () => {
        const own = receiver.received.filter(({ body }) => body.includes(card.id));
        const events = own.map(({ body, headers }) => client.webhooks.verify(body, headers, secret));
        return events.length >= wanted.length && events;
      });
      assert.deepEqual([...new Set(verified.map(({ type }) => type))].sort(), wanted);
      for (const event of verified) assert.equal(event.mode, mode);
      const listed = await collect(client.events.list({ limit: 2 }));
      assert.deepEqual(new Set(listed.map(({ id }) => id)), new Set(verified.map(({ id }) => id)));
    });
  }

  it('waits for operations that the network completes later', async () => {
    const client = clientOf('live');
    const pending = await client.cards.create({ amount: 1_041, external_ref: ref() });
    assert.deepEqual([pending.status, pending.lastResponse.status], ['funding_pending', 202]);
    const card = await client.cards.waitUntilSettled(pending.id);
    assert.equal(card.status, 'active');
    assert.deepEqual(await client.cards.get(pending.id), card);
    const accepted = await client.topups.create(card.id, { amount: 1_043 });
    const topup: Topup = accepted;
    assert.equal(topup.status, 'pending');
    const operation = await client.operations.get(accepted.lastResponse.operationId ?? '');
    assert.deepEqual(operation.resource, { type: 'topup', id: topup.id });
    const ended = await client.topups.waitUntilSettled(topup.id);
    assert.deepEqual([ended.status, ended.failure_code], ['failed', 'topup_failed']);
  });

  it('throws an API error with its code, type and what is wrong', async () => {
    const wrong = { amount: -1, external_ref: '', card_name: 'Ads' };
    const { param, issues, message } = await refused(clientOf('test').cards.create(wrong), {
      status: 400,
      type: 'invalid_request',
      code: 'validation_failed',
    });
    assert.deepEqual([param, issues.map(({ path }) => path)], ['amount', ['amount', 'external_ref']]);
    assert.match(message, /^amount /);
  });

  for (const mode of ['test', 'live'] as const) {
    it(`retries if the response for a ${mode} card is lost, and the card is paid once`, async () => {
      const proxy = await startLossyProxy(new URL(baseUrl).origin, 2);
      try {
        const client = clientOf(mode, `${proxy.url}/v1`);
        const direct = clientOf(mode);
        const { available: before } = await direct.balance.get();
        const { total_debited } = await direct.quotes.create({ type: 'card_issue', amount: 1_000 });
        const external_ref = ref();
        const card = await client.cards.create({ amount: 1_000, external_ref });
        assert.equal(proxy.lost(), 2);
        assert.deepEqual([card.status, card.lastResponse.idempotentReplayed], ['active', true]);
        assert.equal((await direct.balance.get()).available, before - total_debited);
        assert.equal((await collect(direct.cards.list({ external_ref }))).length, 1);
      } finally {
        await proxy.close();
      }
    });
  }
});

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { inspect } from 'node:util';
import { updatePartner } from '../../accounts/partners.ts';
import {
  CardIssuing,
  CardIssuingError,
  type ErrorDetails,
  type Topup,
  type Withdrawal,
} from '../../client/index.ts';
import type { Mode } from '../../domain/mode.ts';
import { FUNDS_CENTS, fundedPartner } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import { startLossyProxy } from '../support/sockets.ts';
import { startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';
import { type Receiver, startReceiver } from '../support/webhooks/receiver.ts';

/** Each method's request and response are in test/unit/client/operations.test.ts. */
describe('the TypeScript client, used with the whole service,', () => {
  let stack: TestStack;
  let baseUrl: string;
  let partner: TestPartner;
  let receiver: Receiver;

  const clientOf = (mode: Mode, one = partner, at = baseUrl) =>
    new CardIssuing({ apiKey: one.keys[mode], baseUrl: at });
  const ref = () => randomUUID();
  const refused = async (call: PromiseLike<unknown>, expected: Partial<ErrorDetails>) => {
    const error = await call.then(
      () => assert.fail('the call succeeded'),
      (thrown) => thrown,
    );
    assert.ok(error instanceof CardIssuingError, inspect(error));
    assert.match(error.requestId ?? '', /^req_/);
    assert.deepEqual({ ...expected, ...pick(error, Object.keys(expected)) }, expected);
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
      assert.deepEqual(pick(await client.account.ping(), ['ok', 'partner_id', 'mode']), {
        ok: true,
        partner_id: partner.id,
        mode,
      });
      const [product] = (await client.products.list()).data;
      const price = await client.quotes.create({ type: 'card_issue', amount: 5_000 });
      const card = await client.cards.create({
        amount: 5_000,
        external_ref: ref(),
        ...(product && { product_code: product.product_code }),
      });
      assert.deepEqual([card.status, card.balance, card.lastResponse.status], ['active', 5_000, 201]);
      assert.equal((await client.balance.get()).total, FUNDS_CENTS - price.total_debited);

      const topup = await client.topups.create(card.id, { amount: 2_500 });
      assert.deepEqual(await client.topups.get(topup.id), topup);
      assert.deepEqual(await collect(client.topups.list(card.id)), [topup]);
      const withdrawal = await client.withdrawals.create(card.id, { amount: 1_000 });
      assert.equal(withdrawal.card_balance, 6_500);
      assert.deepEqual(await client.withdrawals.get(withdrawal.id), withdrawal);
      assert.deepEqual(await collect(client.withdrawals.list(card.id)), [withdrawal]);
      await refused(client.withdrawals.create(card.id, { amount: 6_501 }), {
        status: 402,
        type: 'payment',
        code: 'insufficient_card_balance',
      });

      const changed = await client.cards.update(card.id, { card_name: 'Ads', metadata: { order: '4711' } });
      assert.deepEqual([changed.card_name, changed.metadata], ['Ads', { order: '4711' }]);
      assert.equal((await client.cards.freeze(card.id)).status, 'frozen');
      await refused(client.cards.freeze(card.id), { status: 409, code: 'invalid_state', type: 'conflict' });
      assert.equal((await client.cards.unfreeze(card.id)).status, 'active');
      const { pan, card_id } = await client.cards.getSecureDetails(card.id);
      assert.equal(card_id, card.id);
      assert.match(pan, /^\d{16}$/);
      assert.equal((await client.cards.block(card.id)).status, 'blocked');
      assert.deepEqual(pick(await client.cards.get(card.id), ['status', 'balance']), {
        status: 'blocked',
        balance: 0,
      });

      const changes = await collect(client.balanceTransactions.list({ limit: 1 }));
      const { total } = await client.balance.get();
      assert.equal(
        changes.reduce((sum, { amount }) => sum + amount, 0),
        total,
      );

      const wanted = [
        'card.blocked',
        'card.frozen',
        'card.issued',
        'card.unfrozen',
        'card.updated',
        'topup.succeeded',
        'withdrawal.succeeded',
      ];
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

  it('reads lists page by page', async () => {
    const client = clientOf('test', await fundedPartner(stack));
    const refs = Array.from({ length: 5 }, ref);
    const ids: string[] = [];
    for (const external_ref of refs)
      ids.push((await client.cards.create({ amount: 1_000, external_ref })).id);
    const found = await collect(client.cards.list({ limit: 2 }));
    assert.deepEqual(
      found.map(({ id }) => id),
      ids.toReversed(),
    );
    const page = await client.cards.list({ limit: 2 });
    assert.deepEqual([page.data.length, page.has_more, page.next_cursor], [2, true, ids[3]]);
    const [only] = await collect(client.cards.list({ external_ref: refs[1] ?? '', status: 'active' }));
    assert.equal(only?.id, ids[1]);
  });

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
    const { idempotencyKey } = accepted.lastResponse;
    const [over, ...others] = await collect(
      client.operations.list({ idempotency_key: idempotencyKey ?? '', status: 'completed' }),
    );
    assert.deepEqual([over?.id, over?.network?.last_answer, others], [operation.id, 'declined', []]);
    assert.deepEqual([ended.status, ended.failure_code], ['failed', 'topup_failed']);
    const withdrawal: Withdrawal = await client.withdrawals.create(card.id, { amount: 143 });
    assert.equal(withdrawal.status, 'pending');
    const settled = await client.withdrawals.waitUntilSettled(withdrawal.id);
    assert.deepEqual([settled.status, settled.failure_code], ['failed', 'withdrawal_failed']);
    await refused(client.cards.create({ amount: 1_042, external_ref: ref() }), {
      status: 402,
      type: 'payment',
      code: 'provider_declined',
    });
  });

  it('throws an API error with its code, type and what is wrong', async () => {
    const [test, live] = [clientOf('test'), clientOf('live')];
    const stranger = new CardIssuing({ apiKey: 'sk_test_nobody', baseUrl });
    await refused(stranger.balance.get(), { status: 401, type: 'authentication', code: 'invalid_api_key' });
    await refused(test.cards.get('card_nobody'), { status: 404, type: 'not_found', code: 'card_not_found' });
    await refused(test.deposits.create({ amount: 100 }), { status: 403, code: 'test_key_not_allowed' });
    await refused(live.testHelpers.creditBalance({ amount: 1 }), {
      status: 403,
      code: 'live_key_not_allowed',
    });
    await refused(test.cards.create({ amount: 100_000_000, external_ref: ref() }), { status: 422 });

    const external_ref = ref();
    await test.cards.create({ amount: 100, external_ref });
    await refused(test.cards.create({ amount: 100, external_ref }), {
      status: 409,
      code: 'external_ref_taken',
    });
    const wrong = { amount: -1, external_ref: '', card_name: 'Ads' };
    const { param, issues, message } = await refused(test.cards.create(wrong), {
      status: 400,
      type: 'invalid_request',
      code: 'validation_failed',
    });
    assert.deepEqual([param, issues.map(({ path }) => path)], ['amount', ['amount', 'external_ref']]);
    assert.match(message, /^amount /);

    const poor = clientOf('test', await stack.createPartner());
    const idempotencyKey = ref();
    const short = { status: 402, type: 'payment', code: 'insufficient_funds', idempotencyKey } as const;
    await refused(poor.cards.create({ amount: 100, external_ref: 'a' }, { idempotencyKey }), short);
    await poor.testHelpers.creditBalance({ amount: 10_000 });
    // Stored under its key, so only a new key tries again.
    await refused(poor.cards.create({ amount: 100, external_ref: 'a' }, { idempotencyKey }), short);
    assert.equal((await poor.cards.create({ amount: 100, external_ref: 'a' })).status, 'active');
  });

  for (const mode of ['test', 'live'] as const) {
    it(`retries if the response for a ${mode} card is lost, and the card is paid once`, async () => {
      const proxy = await startLossyProxy(new URL(baseUrl).origin, 2);
      try {
        const client = clientOf(mode, partner, `${proxy.url}/v1`);
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

  it('gets through the rate limit by waiting for as long as Retry-After says', async () => {
    const limited = await startTestStack({ rateLimitPerSecond: 1, rateLimitBurst: 3 }, { worker: false });
    try {
      const { keys } = await limited.createPartner();
      const at = `http://${limited.config.host}:${limited.config.port}/v1`;
      const hasty = new CardIssuing({ apiKey: keys.test, baseUrl: at, maxRetries: 0 });
      const error = await refused(
        (async () => {
          for (;;) await hasty.account.ping();
        })(),
        { status: 429, type: 'rate_limit', code: 'rate_limited' },
      );
      assert.ok((error.retryAfterSeconds ?? 0) >= 1);
      const patient = new CardIssuing({ apiKey: keys.test, baseUrl: at, maxRetries: 20 });
      const pings = await Promise.all(Array.from({ length: 4 }, () => patient.account.ping()));
      assert.ok(pings.every(({ ok }) => ok));
    } finally {
      await limited.stop();
    }
  });
});

function pick<T extends object>(from: T, names: readonly string[]): Partial<T> {
  return Object.fromEntries(names.map((name) => [name, from[name as keyof T]])) as Partial<T>;
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { inspect } from 'node:util';
import { createApiKey } from '../../accounts/api-keys.ts';
import { updatePartner } from '../../accounts/partners.ts';
import { Scope } from '../../accounts/scope-rules.ts';
import {
  CardIssuing,
  CardIssuingError,
  type ErrorDetails,
  type Topup,
  type Withdrawal,
} from '../../client/index.ts';
import type { Mode } from '../../domain/mode.ts';
import { type DepositStack, startDepositStack } from '../support/deposits/deposit-stack.ts';
import { FUNDS_CENTS, fundedPartner } from '../support/money.ts';
import { startLossyProxy } from '../support/sockets.ts';
import { startTestStack, type TestPartner } from '../support/stack.ts';
import { until } from '../support/until.ts';
import { type Receiver, startReceiver } from '../support/webhooks/receiver.ts';

describe('the TypeScript client, used with the whole service,', () => {
  let service: DepositStack;
  let baseUrl: string;
  let partner: TestPartner;
  let receiver: Receiver;
  const called = new Set<string>();

  const clientOf = (mode: Mode, one = partner, at = baseUrl) =>
    recordCalls(new CardIssuing({ apiKey: one.keys[mode], baseUrl: at }), called);
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
    service = await startDepositStack();
    baseUrl = `http://${service.stack.config.host}:${service.stack.config.port}/v1`;
    partner = await fundedPartner(service.stack);
    await updatePartner(service.stack.operator, partner.id, { secureDetailsEnabled: true });
    receiver = await startReceiver();
  });
  after(async () => {
    await receiver?.stop();
    await service?.stop();
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

  it('simulates transactions, and reads lists page by page', async () => {
    const mine = await service.stack.createPartner();
    const client = clientOf('test', mine);
    const balance = await client.testHelpers.creditBalance({ amount: 100_000 });
    assert.equal(balance.available, 100_000);
    assert.equal((await client.balance.setAlert({ threshold: 5_000 })).threshold, 5_000);
    assert.equal((await client.balance.getAlert()).threshold, 5_000);
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
    assert.deepEqual(await collect(client.cards.list({ status: 'frozen' })), []);

    const [cardId = ''] = ids;
    const spending_controls = { spending_limits: [{ amount: 900, interval: 'daily' as const }] };
    await client.cards.update(cardId, { spending_controls });
    const [limit] = await collect(client.spendingLimits.list(cardId));
    assert.deepEqual([limit?.interval, limit?.remaining], ['daily', 900]);
    for (const type of ['purchase', 'decline', 'refund'] as const) {
      await client.testHelpers.simulateTransaction(cardId, { type, amount: 100 });
    }
    const types = (await collect(client.transactions.list(cardId, { limit: 1 }))).map(({ type }) => type);
    const all = await collect(client.transactions.listAll({ card_id: cardId, limit: 1 }));
    assert.deepEqual(
      all.map(({ type }) => type),
      types,
    );
    assert.deepEqual(types, ['refund', 'decline', 'purchase']);

    const authorize = () => client.testHelpers.createAuthorization(cardId, { amount: 100 });
    const [first, second, third] = [await authorize(), await authorize(), await authorize()];
    await client.testHelpers.incrementAuthorization(first.id, { amount: 50 });
    const cleared = await client.testHelpers.captureAuthorization(first.id);
    assert.deepEqual([cleared.amount, cleared.authorization_id], [150, first.id]);
    assert.equal((await client.testHelpers.reverseAuthorization(second.id)).status, 'reversed');
    assert.equal((await client.testHelpers.expireAuthorization(third.id)).status, 'expired');
    const reversed = await collect(
      client.authorizations.listAll({ card_id: cardId, status: 'reversed', limit: 1 }),
    );
    assert.deepEqual(
      reversed.map(({ id }) => id),
      [second.id],
    );
    const short = await client.testHelpers.createDeposit({ amount: 2_500, payment: 'short' });
    await until(
      'it needs a review',
      async () => (await client.deposits.get(short.id)).status === 'needs_review',
    );
    const resolved = await client.testHelpers.resolveDeposit(short.id, { outcome: 'returned' });
    assert.equal(resolved.status, 'returned');
    const { offset_seconds: ahead } = await client.testHelpers.advanceClock({ seconds: 5 });
    assert.equal((await client.testHelpers.getClock()).offset_seconds, ahead);
    assert.equal((await client.testHelpers.forceCapture(cardId, { amount: 10 })).authorization_id, null);
    assert.equal((await client.authorizations.get(first.id)).status, 'closed');
    const listed = await collect(client.authorizations.list(cardId, { limit: 2 }));
    assert.deepEqual(
      listed.map(({ id }) => id),
      [third.id, second.id, first.id],
    );
  });

  it('downloads reports, and throws if one is refused', async () => {
    const { reports } = clientOf('test');
    const hourMs = 3_600_000;
    const at = (ms: number) => new Date(Date.now() + ms).toISOString();
    const period = { from: at(-hourMs), to: at(hourMs) };
    const lines = async (download: Promise<ReadableStream<Uint8Array>>) =>
      (await new Response(await download).text()).split('\r\n');
    assert.match((await lines(reports.balanceTransactions(period)))[1] ?? '', /^btx_/);
    assert.match((await lines(reports.cardTransactions(period)))[0] ?? '', /^id,object,card_id,/);
    assert.match((await lines(reports.authorizations(period)))[0] ?? '', /^id,object,card_id,/);
    assert.match((await lines(reports.deposits(period)))[0] ?? '', /^id,object,status,/);
    await refused(reports.deposits({ from: period.to, to: period.from }), {
      status: 400,
      code: 'validation_failed',
      param: 'to',
    });
  });

  it('reads statements', async () => {
    const { statements } = clientOf('test');
    const month = new Date().toISOString().slice(0, 7);
    const { opening_balance, closing_balance, lines } = await statements.get(month);
    const changes = lines.reduce((sum, { amount }) => sum + amount, 0);
    assert.equal(opening_balance + changes, closing_balance);
    await refused(statements.get('2026-13'), { status: 404, code: 'statement_not_found' });
  });

  it('waits for operations that the network completes later', async () => {
    const client = clientOf('live');
    const pending = await client.cards.create({ amount: 1_041, external_ref: ref() });
    assert.deepEqual([pending.status, pending.lastResponse.status], ['funding_pending', 202]);
    // This one is no operation of the API, so its calls are not recorded.
    const waiting = new CardIssuing({ apiKey: partner.keys.live, baseUrl });
    const card = await waiting.cards.waitUntilSettled(pending.id);
    assert.equal(card.status, 'active');
    assert.deepEqual(await client.cards.get(pending.id), card);
    const accepted = await client.topups.create(card.id, { amount: 1_043 });
    const topup: Topup = accepted;
    assert.equal(topup.status, 'pending');
    const operation = await client.operations.get(accepted.lastResponse.operationId ?? '');
    assert.deepEqual(operation.resource, { type: 'topup', id: topup.id });
    const ended = await waiting.topups.waitUntilSettled(topup.id);
    const { idempotencyKey } = accepted.lastResponse;
    const [over, ...others] = await collect(
      client.operations.list({ idempotency_key: idempotencyKey ?? '', status: 'completed' }),
    );
    assert.deepEqual([over?.id, over?.network?.last_answer, others], [operation.id, 'declined', []]);
    assert.deepEqual([ended.status, ended.failure_code], ['failed', 'topup_failed']);
    const withdrawal: Withdrawal = await client.withdrawals.create(card.id, { amount: 143 });
    assert.equal(withdrawal.status, 'pending');
    const settled = await waiting.withdrawals.waitUntilSettled(withdrawal.id);
    assert.deepEqual([settled.status, settled.failure_code], ['failed', 'withdrawal_failed']);
    await refused(client.cards.create({ amount: 1_042, external_ref: ref() }), {
      status: 402,
      type: 'payment',
      code: 'provider_declined',
    });
  });

  it('gives out deposit addresses', async () => {
    const client = clientOf('live');
    const deposit = await client.deposits.create({ amount: 2_500 }, { idempotencyKey: 'deposit-1' });
    assert.deepEqual(
      await client.deposits.create({ amount: 2_500 }, { idempotencyKey: 'deposit-1' }),
      deposit,
    );
    assert.deepEqual(pick(await client.deposits.get(deposit.id), ['id', 'status']), {
      id: deposit.id,
      status: 'awaiting_payment',
    });
    const [newest] = await collect(client.deposits.list({ limit: 1 }));
    assert.equal(newest?.address, deposit.address);
  });

  it('manages several webhook endpoints, and sends an event to one of them', async () => {
    const client = clientOf('test', await service.stack.createPartner());
    const created = await client.webhookEndpoints.create({ url: receiver.url, event_types: ['card.issued'] });
    assert.match(created.secret ?? '', /^whsec_/);
    const { id } = await client.webhookEndpoints.update(created.id, { description: 'Books' });
    assert.equal((await client.webhookEndpoints.get(id)).description, 'Books');
    assert.deepEqual(
      (await collect(client.webhookEndpoints.list())).map((endpoint) => endpoint.id),
      [id],
    );
    const { secret = '' } = await client.webhookEndpoints.rotateSecret(id);
    const ping = await client.webhookEndpoints.test(id);
    const arrived = await until('the ping arrives', () => receiver.attempts(ping.id)[0]);
    assert.equal(client.webhooks.verify(arrived.body, arrived.headers, secret).id, ping.id);
    await client.events.resend(ping.id, { endpoint_id: id });
    await until('the ping comes again', () => receiver.attempts(ping.id)[1]);
    const replay = await client.webhookEndpoints.replay(id, { created_gte: created.created });
    assert.equal((await client.webhookEndpoints.getReplay(id, replay.id)).id, replay.id);
    await client.webhookEndpoints.delete(id);
    await refused(client.webhookEndpoints.get(id), { status: 404, code: 'webhook_endpoint_not_found' });
  });

  it('manages the webhook endpoint, whose secrets both verify while they are rotated', async () => {
    const mine = await service.stack.createPartner();
    const client = clientOf('test', mine);
    const { secret: old = '' } = await client.webhookEndpoint.set({ url: receiver.url });
    assert.equal((await client.webhookEndpoint.get()).secret, undefined);
    const { secret: rotated = '' } = await client.webhookEndpoint.rotateSecret();
    assert.notEqual(rotated, old);
    const ping = await client.webhookEndpoint.test();
    assert.equal(ping.type, 'ping');
    const arrived = await until('the ping arrives', () => receiver.attempts(ping.id)[0]);
    const event = client.webhooks.verify(arrived.body, arrived.headers, [old, rotated]);
    assert.equal(event.id, ping.id);
    assert.throws(() => client.webhooks.verify(arrived.body, arrived.headers, old), {
      reason: 'signature_mismatch',
    });
    await until('the event is delivered', async () => {
      const { delivery } = await client.events.get(ping.id);
      return delivery.status === 'delivered';
    });
    await client.events.resend(ping.id);
    const again = await until('the ping comes again', () => receiver.attempts(ping.id)[1]);
    assert.equal(again.body, arrived.body);
    await client.webhookEndpoint.delete();
    await refused(client.webhookEndpoint.get(), { status: 404, code: 'webhook_endpoint_not_found' });
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

    const poor = clientOf('test', await service.stack.createPartner());
    const idempotencyKey = ref();
    const short = { status: 402, type: 'payment', code: 'insufficient_funds', idempotencyKey } as const;
    await refused(poor.cards.create({ amount: 100, external_ref: 'a' }, { idempotencyKey }), short);
    await poor.testHelpers.creditBalance({ amount: 10_000 });
    // Stored under its key, so only a new key tries again.
    await refused(poor.cards.create({ amount: 100, external_ref: 'a' }, { idempotencyKey }), short);
    assert.equal((await poor.cards.create({ amount: 100, external_ref: 'a' })).status, 'active');
  });

  it("manages the account's keys", async () => {
    const wanted = { partnerId: partner.id, mode: 'test', name: null, scopes: Scope.options } as const;
    const { key } = await createApiKey(service.stack.operator, wanted);
    const { apiKeys } = recordCalls(new CardIssuing({ apiKey: key, baseUrl }), called);
    const made = await apiKeys.create({ name: 'reader', scopes: ['balance:read'] });
    const reader = new CardIssuing({ apiKey: made.key ?? '', baseUrl });
    assert.equal((await reader.balance.get()).mode, 'test');
    await refused(reader.cards.list(), { status: 403, code: 'insufficient_scope' });
    assert.deepEqual((await apiKeys.get(made.id)).scopes, ['balance:read']);
    const rotated = await apiKeys.rotate(made.id, { overlap_seconds: 60 });
    assert.deepEqual([rotated.name, rotated.scopes], ['reader', ['balance:read']]);
    await apiKeys.revoke(rotated.id);
    const newest = (await apiKeys.list({ limit: 1 })).data[0];
    assert.deepEqual([newest?.id, newest?.status], [rotated.id, 'revoked']);
  });

  it('shows the log of requests', async () => {
    const { requests, cards } = clientOf('test');
    await refused(cards.create({ amount: 0 }, { idempotencyKey: ref() }), {
      status: 400,
      code: 'validation_failed',
    });
    const [newest] = await until('a refused request is in the log', async () => {
      const { data } = await requests.list({ status: '400', method: 'POST' });
      return data.length > 0 && data;
    });
    const { error, path } = await requests.get(newest?.id ?? '');
    assert.deepEqual([path, error?.param], ['/v1/cards', 'amount']);
  });

  it('makes, lists and ends workbench sessions', async () => {
    const { workbenchSessions } = clientOf('test');
    const made = await workbenchSessions.create({ scopes: ['cards:read'] });
    assert.match(made.url ?? '', /\/workbench\/#/);
    await workbenchSessions.delete(made.id);
    const newest = (await workbenchSessions.list({ limit: 1 })).data[0];
    assert.deepEqual([newest?.id, newest?.status], [made.id, 'ended']);
  });

  it('replays an operation with its Idempotency-Key, and cannot use the key for another one', async () => {
    const client = clientOf('test');
    const idempotencyKey = ref();
    const body = { amount: 1_000, external_ref: ref() };
    const first = await client.cards.create(body, { idempotencyKey });
    const { available } = await client.balance.get();
    const second = await client.cards.create(body, { idempotencyKey });
    assert.deepEqual(second, first);
    const replayed = [first, second].map(({ lastResponse }) => lastResponse.idempotentReplayed);
    assert.deepEqual(replayed, [false, true]);
    assert.equal((await client.balance.get()).available, available);
    await refused(client.cards.create({ ...body, amount: 1_001 }, { idempotencyKey }), {
      status: 422,
      code: 'idempotency_conflict',
    });
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

  it('works for every operation of the OpenAPI document: for reads that need nothing, here, for the others, above', async () => {
    const { paths } = JSON.parse(await readFile(new URL('../../docs/openapi.json', import.meta.url), 'utf8'));
    const operations = Object.entries<Record<string, { operationId: string }>>(paths).flatMap(([url, path]) =>
      Object.entries(path).map(([method, { operationId }]) => ({ operationId, url, method })),
    );
    const groups = clientOf('test') as unknown as Record<string, Record<string, () => Promise<unknown>>>;
    for (const { operationId, url, method } of operations) {
      const [group = '', name = ''] = operationId.split('.');
      if (!called.has(operationId) && method === 'get' && !url.includes('{')) await groups[group]?.[name]?.();
    }
    assert.deepEqual([...called].sort(), operations.map(({ operationId }) => operationId).sort());
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

/** The same client, which records the methods that are called, such as `cards.create`. `webhooks` sends no request and is left out. */
function recordCalls(client: CardIssuing, called: Set<string>): CardIssuing {
  return new Proxy(client, {
    get(_, name: string) {
      const resource: unknown = Reflect.get(client, name);
      if (typeof resource !== 'object' || resource === null || name === 'webhooks') return resource;
      return new Proxy(resource, {
        get(_resource, method: string) {
          called.add(`${name}.${method}`);
          return Reflect.get(resource, method).bind(resource);
        },
      });
    },
  });
}

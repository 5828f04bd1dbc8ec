import assert from 'node:assert/strict';
import { creditPayments } from '../../deposits/credit-payments.ts';
import { DepositResource } from '../../deposits/resource.ts';
import { playTestDeposits } from '../../deposits/test-deposits.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { tronAddressHash } from '../../platform/crypto/tron-address.ts';
import { expectError, expectReplay } from '../support/api/answers.ts';
import { depositEvents } from '../support/deposits/payments.ts';
import { seedDeposit } from '../support/deposits/seed-deposits.ts';
import { balanceOf } from '../support/money.ts';
import { environmentOf, operateIn } from '../support/operator/operate.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { CallOptions, TestPartner, TestStack } from '../support/stack.ts';
import { advanceClock } from '../support/test-clock.ts';
import { until } from '../support/until.ts';

const HOUR = 3_600;
const MICRO_PER_CENT = 10_000;

describe('a test deposit', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    partner = await stack.createPartner();
  });
  after(async () => {
    assert.deepEqual(await checkLedger(stack.orm.em.fork()), []);
  });

  const post = (body: unknown, options: CallOptions = {}) =>
    partner.call('POST', '/test/deposits', { body, ...options });
  const open = async (body: object) => {
    const { status, json, text } = await post(body);
    assert.equal(status, 201, text);
    return json;
  };
  const get = async (id: string) => (await partner.call('GET', `/funding/deposits/${id}`)).json;
  const resolve = (id: string, outcome: unknown, options: CallOptions = {}) =>
    partner.call('POST', `/test/deposits/${id}/resolve`, { body: { outcome }, ...options });
  const untilIt = (id: string, status: string) =>
    until(`it is ${status}`, async () => {
      const deposit = await get(id);
      return deposit.status === status ? deposit : undefined;
    });
  const eventsOf = async (id: string) =>
    (await depositEvents(stack.orm, id)).map(([type, status]) => `${type} ${status}`);

  it('is created as a live one is, with an address that no wallet accepts', async () => {
    const { id, address, contract_address, created, expires_at, ...rest } = await open({ amount: 2_512 });
    assert.match(id, /^dep_/);
    for (const one of [address, contract_address]) {
      assert.match(one, /^test_/);
      assert.equal(tronAddressHash(one), null);
    }
    assert.equal(Date.parse(expires_at) - Date.parse(created), 8 * HOUR * 1_000);
    assert.deepEqual(rest, {
      ...{ object: 'deposit', status: 'awaiting_payment', amount: 2_512, currency: 'USD', asset: 'USDT' },
      ...{ network: 'TRC-20', amount_usdt: '25.12', received_amount: 0, credited_amount: 0, tx_hash: null },
      ...{ payments: [], mode: 'test', confirmed_at: null },
    });
  });

  it('is paid exactly, by itself, with the money in the test balance and deposit.confirmed', async () => {
    const { id } = await open({ amount: 2_500 });
    const deposit = await untilIt(id, 'confirmed');
    assert.deepEqual(DepositResource.strict().parse(deposit), deposit);
    const { tx_hash, credited_amount, payments, confirmed_at } = deposit;
    assert.match(tx_hash, /^[0-9a-f]{64}$/);
    assert.deepEqual(
      [credited_amount, payments.length, payments[0].amount_usdt, payments[0].status],
      [2_500, 1, '25.00', 'credited'],
    );
    assert.ok(Date.parse(confirmed_at) >= Date.parse(deposit.created));
    assert.deepEqual(await balanceOf(partner, 'test'), [2_500, 0, 2_500]);
    assert.deepEqual(await balanceOf(partner, 'live'), [0, 0, 0]);
    const { json } = await partner.call('GET', '/balance/transactions');
    assert.deepEqual(
      json.data.map(({ type, amount, source }: Record<string, unknown>) => [type, amount, source]),
      [['deposit', 2_500, { type: 'deposit', id }]],
    );
    assert.deepEqual(await eventsOf(id), ['deposit.confirmed confirmed']);
    const { data } = (await partner.call('GET', '/events')).json;
    assert.deepEqual([data[0].mode, data[0].data], ['test', { deposit }]);
  });

  const UNUSUAL = {
    short: { cents: 1_250, events: ['deposit.needs_review needs_review'] },
    over: { cents: 2_600, events: ['deposit.needs_review needs_review'] },
    late: { cents: 2_500, events: ['deposit.expired expired', 'deposit.needs_review needs_review'] },
  };
  for (const [payment, { cents, events }] of Object.entries(UNUSUAL)) {
    it(`needs a review if its payment is ${payment}, which its partner settles either way`, async () => {
      const [one, two] = [await open({ amount: 2_500, payment }), await open({ amount: 2_500, payment })];
      if (payment === 'late') assert.equal(Date.parse(one.expires_at) - Date.parse(one.created), 1_000);
      for (const { id } of [one, two]) {
        const { payments, received_amount, credited_amount } = await untilIt(id, 'needs_review');
        assert.deepEqual([received_amount, credited_amount, payments[0].status], [cents, 0, 'in_review']);
        assert.equal(payments[0].time > one.expires_at, payment === 'late');
        assert.deepEqual(await eventsOf(id), events);
      }
      assert.deepEqual(await balanceOf(partner, 'test'), [0, 0, 0]);

      const credited = await resolve(one.id, 'credit');
      assert.equal(credited.status, 200, credited.text);
      assert.deepEqual(credited.json, await get(one.id));
      assert.deepEqual(
        [credited.json.status, credited.json.credited_amount, credited.json.payments[0].status],
        ['confirmed', cents, 'credited'],
      );
      assert.deepEqual(await eventsOf(one.id), [...events, 'deposit.confirmed confirmed']);
      assert.deepEqual(await balanceOf(partner, 'test'), [cents, 0, cents]);

      const returned = await resolve(two.id, 'returned');
      assert.deepEqual(
        [returned.status, returned.json.status, returned.json.credited_amount],
        [200, 'returned', 0],
      );
      assert.deepEqual(returned.json, await get(two.id));
      assert.deepEqual(await eventsOf(two.id), events);
      assert.deepEqual(await balanceOf(partner, 'test'), [cents, 0, cents]);
      for (const { id } of [one, two]) expectError(await resolve(id, 'credit'), 'invalid_state');
    });
  }

  it('without a payment expires after 8 hours of the clock of its account, with an event', async () => {
    const { id, expires_at } = await open({ amount: 100, payment: 'none' });
    const other = await stack.createPartner();
    const { json: others } = await other.call('POST', '/test/deposits', {
      body: { amount: 100, payment: 'none' },
    });
    await advanceClock(partner, 8 * HOUR - 60);
    await until('nothing is left to do', async () => {
      const { json } = await partner.call('GET', '/test/clock');
      return json.status === 'ready';
    });
    assert.equal((await get(id)).status, 'awaiting_payment');
    await advanceClock(partner, 60);
    await untilIt(id, 'expired');
    assert.deepEqual(await eventsOf(id), ['deposit.expired expired']);
    const { data } = (await partner.call('GET', '/events')).json;
    assert.ok(data[0].created >= expires_at);
    const untouched = await other.call('GET', `/funding/deposits/${others.id}`);
    assert.equal(untouched.json.status, 'awaiting_payment');
    expectError(await resolve(id, 'returned'), 'invalid_state');
  });

  it('is dated by the clock of its account from its creation to its credit', async () => {
    await advanceClock(partner, 24 * HOUR);
    const { id } = await open({ amount: 1_000 });
    const changes = () =>
      asOwner<{ is_ahead: boolean }>(
        stack,
        `SELECT changed_at > now() + interval '23 hours' AS is_ahead FROM deposit WHERE id = $1`,
        [id],
      );
    assert.deepEqual(await changes(), [{ is_ahead: true }]);
    await until('it is confirmed', async () => (await get(id)).status === 'confirmed');
    assert.deepEqual(await changes(), [{ is_ahead: true }]);
  });

  it('is paid in time even if the clock is advanced before its payment arrives', async () => {
    // Without a worker, so that nothing arrives before that.
    const api = await sharedStack('api');
    partner = await api.createPartner();
    const tenant = { partnerId: partner.id, mode: 'test' } as const;
    const { id, expires_at } = await open({ amount: 100 });
    await advanceClock(partner, 9 * HOUR);
    assert.equal(await playTestDeposits(api.orm, { ...tenant, depositIds: [id] }), 1);
    await creditPayments(api.orm, [id]);
    const { status, payments, confirmed_at } = await get(id);
    assert.deepEqual([status, payments[0].time < expires_at], ['confirmed', true]);
    assert.ok(confirmed_at > expires_at, 'it is dated when it was done');
  });

  it('is refused with 422 beyond 10,000 that await a payment', async () => {
    await asOwner(
      stack,
      `INSERT INTO deposit (id, partner_id, mode, network, contract_address, address, amount_cents, created_at, expires_at,
         told_version, test_payment, due_at)
       SELECT 'dep_t' || n, $1, 'test', 'test', 'test_usdt', 'test_', 100, now(), now() + interval '8 hours', NULL, 'none',
         now() + interval '8 hours' FROM generate_series(1, 10000) n`,
      [partner.id],
    );
    expectError(await post({ amount: 100 }), 'limit_exceeded');
    // Another account's are not affected.
    const other = await stack.createPartner();
    const { json } = await other.call('POST', '/test/deposits', { body: { amount: 100 } });
    await until("another account's is paid meanwhile", async () => {
      const read = await other.call('GET', `/funding/deposits/${json.id}`);
      return read.json.status === 'confirmed';
    });
  });

  it('is resolved once for each Idempotency-Key', async () => {
    const { id } = await open({ amount: 100, payment: 'short' });
    await untilIt(id, 'needs_review');
    const resolved = await Promise.all(
      Array.from({ length: 5 }, () => resolve(id, 'credit', { idempotencyKey: 'resolve' })),
    );
    for (const { status, text } of resolved) assert.deepEqual([status, text], [200, resolved[0]?.text]);
    const first = resolved.find(({ headers }) => headers.get('idempotent-replayed') === null);
    expectReplay(await resolve(id, 'credit', { idempotencyKey: 'resolve' }), first ?? assert.fail());
    expectError(await resolve(id, 'returned', { idempotencyKey: 'resolve' }), 'idempotency_conflict');
    assert.deepEqual(await balanceOf(partner, 'test'), [50, 0, 50]);
  });

  it('is resolved by one of several requests at once', async () => {
    const { id } = await open({ amount: 100, payment: 'over' });
    await untilIt(id, 'needs_review');
    const answers = await Promise.all(
      ['credit', 'returned', 'credit', 'returned'].map((outcome) => resolve(id, outcome)),
    );
    assert.equal(answers.filter(({ status }) => status === 200).length, 1);
    for (const answer of answers) if (answer.status !== 200) expectError(answer, 'invalid_state');
  });

  it('can only be resolved while something is in review, and no live one can', async () => {
    const { id } = await open({ amount: 100, payment: 'none' });
    expectError(await resolve(id, 'credit'), 'invalid_state');
    expectError(await resolve(id, 'sent back'), 'validation_failed', ['outcome']);
    expectError(await resolve(id, undefined), 'validation_failed', ['outcome']);
    const live = await seedDeposit(stack, partner.id, { status: 'awaiting_payment' });
    expectError(await resolve(live, 'credit'), 'deposit_not_found');
  });

  it('never waits for an operator, and has no workflow', async () => {
    const { id } = await open({ amount: 100, payment: 'short' });
    await untilIt(id, 'needs_review');
    const operate = operateIn(environmentOf(stack.config));
    const { json, out } = await operate('attention', 'list');
    assert.ok(Array.isArray(json), out);
    assert.ok(!out.includes(id));
    assert.ok(!(await operate('deposit', 'list')).out.includes(id));
    await assert.rejects(stack.client.workflow.getHandle(`deposit/${id}`).describe());
    const [row] = await asOwner<{ told_version: number | null }>(
      stack,
      'SELECT told_version FROM deposit WHERE id = $1',
      [id],
    );
    assert.equal(row?.told_version, null);
  });

  it("of a million cents is worth as much as its payment's amount says", async () => {
    const { id } = await open({ amount: 100_000_001, payment: 'short' });
    const { payments, received_amount } = await untilIt(id, 'needs_review');
    assert.equal(received_amount, 50_000_000);
    assert.equal(Number(payments[0].amount_usdt) * 1_000_000, 100_000_001 * (MICRO_PER_CENT / 2));
    assert.equal((await resolve(id, 'credit')).json.credited_amount, 50_000_000);
  });
});

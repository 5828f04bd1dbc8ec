import assert from 'node:assert/strict';
import type { FakeIncrease } from '../../../dev/increase/fake-increase.ts';
import type { Fault } from '../../../dev/increase/faults.ts';
import { newId } from '../../../platform/crypto/new-id.ts';
import {
  authorize,
  EVENTS_PATH,
  type IncreaseCard,
  liveCard,
  PATIENT_MS,
  read,
  startIncreaseStack,
  untilRead,
} from '../../support/adapters/increase-stack.ts';
import { eventTypes } from '../../support/cards.ts';
import { assertLedgerClean } from '../../support/money.ts';
import { connectTo, ownerUrlOf } from '../../support/postgres.ts';
import type { TestStack } from '../../support/stack.ts';

/** How long the fake waits for an answer that can't come. */
const IN_VAIN_MS = 500;

describe("Increase's real-time decisions", () => {
  let stack: TestStack;
  let fake: FakeIncrease;
  let stop: () => Promise<void>;
  before(async () => {
    ({ stack, fake, stop } = await startIncreaseStack());
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stop();
  });
  afterEach(() => {
    fake.faults.clear();
    fake.simulations.declinesAfterAsking = null;
    fake.simulations.decisionMs = PATIENT_MS;
  });

  const decision = () => fake.bank.books.decisions.at(-1);
  const lastReason = () =>
    decision()?.card_authorization?.decline?.reason ?? decision()?.card_authorization?.decision;
  const available = async (card: IncreaseCard) => (await read(card)).available_balance;

  it('are approved if the card has the money, which is then held until Increase says', async () => {
    const card = await liveCard(stack);
    const payment = await authorize(fake, card, { amount: 1_200, merchant_descriptor: 'SHOP' });
    assert.equal(await available(card), 8_800);
    await untilRead(stack, fake);
    const [authorization, ...others] = (await read(card, '/authorizations')).data;
    assert.deepEqual(others, []);
    assert.equal(authorization.status, 'pending');
    assert.equal(authorization.merchant.name, 'SHOP');
    const told = payment.elements[0]?.card_authorization?.expires_at ?? '';
    assert.equal(Date.parse(authorization.expires_at), Date.parse(told));
    assert.equal(authorization.requests.length, 1);
  });

  it('are answered before the post, and 200', async () => {
    await authorize(fake, await liveCard(stack));
    await fake.delivery.idle();
    const answered = fake.delivery.answers.filter(({ category }) =>
      category.startsWith('real_time_decision'),
    );
    assert.deepEqual(new Set(answered.map(({ status }) => status)), new Set([200]));
  });

  describe('are declined, with the reason that Increase knows for', () => {
    const inControls = (controls: object) => ({ spending_controls: controls });
    for (const { what, more = {}, status, amount = 1_000, reason } of [
      { what: 'a frozen card', status: 'freeze', reason: 'card_temporarily_disabled' },
      { what: 'a blocked card', status: 'block', reason: 'transaction_never_allowed' },
      {
        what: "a merchant's category",
        more: inControls({ blocked_categories: ['5734'] }),
        reason: 'transaction_never_allowed',
      },
      {
        what: "a merchant's country",
        more: inControls({ allowed_merchant_countries: ['DE'] }),
        reason: 'transaction_never_allowed',
      },
      {
        what: 'a spending limit',
        more: inControls({ spending_limits: [{ amount: 500, interval: 'daily' }] }),
        reason: 'exceeds_approval_limit',
      },
      { what: 'too little money', amount: 10_001, reason: 'insufficient_funds' },
    ] as const satisfies {
      what: string;
      more?: object;
      status?: string;
      amount?: number;
      reason: string;
    }[]) {
      it(what, async () => {
        const card = await liveCard(stack, more);
        if (status !== undefined) {
          const changed = await card.partner.call('POST', `/cards/${card.cardId}/${status}`, {
            mode: 'live',
            body: {},
          });
          assert.equal(changed.status, 200, changed.text);
          // So that it is we who decline.
          fake.bank.card(card.networkCardId).status = 'active';
        }
        fake.bank.pay(fake.bank.card(card.networkCardId).account_id, 100_000);
        const payment = await authorize(fake, card, { amount });
        assert.equal(lastReason(), reason);
        assert.equal(payment.elements[0]?.card_decline?.reason, 'webhook_declined');
        await untilRead(stack, fake);
        const { data } = await read(card, '/transactions');
        assert.equal(data.filter(({ type }: { type: string }) => type === 'decline').length, 1);
        if (status === undefined) assert.equal(await available(card), 10_000);
      });
    }

    it('a card that is unknown here', async () => {
      const account = fake.bank.openAccount({ name: 'Somebody else' }, null);
      fake.bank.pay(account.id, 10_000);
      const { id } = fake.bank.makeCard({ account_id: account.id }, null);
      await fake.simulations.authorize({ card_id: id, amount: 100 });
      assert.equal(lastReason(), 'other');
    });
  });

  it('on an increment decide the additional amount', async () => {
    const card = await liveCard(stack);
    const payment = await authorize(fake, card, { amount: 1_000 });
    await fake.simulations.increment({ card_payment_id: payment.id, amount: 500 });
    fake.bank.pay(fake.bank.card(card.networkCardId).account_id, 100_000);
    await fake.simulations.increment({ card_payment_id: payment.id, amount: 9_000 });
    assert.equal(lastReason(), 'insufficient_funds');
    await untilRead(stack, fake);
    const [authorization] = (await read(card, '/authorizations')).data;
    assert.equal(authorization.amount, 1_500);
    assert.deepEqual(
      authorization.requests.map(({ amount, approved }: Record<string, unknown>) => [amount, approved]),
      [
        [1_000, true],
        [500, true],
        [9_000, false],
      ],
    );
  });

  it('hold nothing for a refund, a balance inquiry or 0 cents', async () => {
    const card = await liveCard(stack);
    for (const category of ['refund', 'balance_inquiry'] as const) {
      await authorize(fake, card, { amount: 900, processing_category: { category } });
      assert.equal(lastReason(), 'approve');
      assert.equal(await available(card), 10_000);
    }
    await authorize(fake, card, { amount: 0 });
    assert.equal(lastReason(), 'approve');
    await untilRead(stack, fake);
    assert.equal((await read(card)).balance, 10_000);
  });

  it('that we approve, and Increase then declines by itself, hold nothing any more', async () => {
    const card = await liveCard(stack);
    fake.simulations.declinesAfterAsking = 'suspected_fraud';
    await authorize(fake, card);
    assert.equal(lastReason(), 'approve');
    await untilRead(stack, fake);
    assert.equal(await available(card), 10_000);
    const [authorization] = (await read(card, '/authorizations')).data;
    assert.notEqual(authorization.status, 'pending');
  });

  it('that the network makes without us are booked, whatever our rules say', async () => {
    const card = await liveCard(stack, { spending_controls: { blocked_categories: ['5734'] } });
    await authorize(fake, card, {
      amount: 4_000,
      network_details: { visa: { stand_in_processing_reason: 'issuer_error' } },
    });
    await untilRead(stack, fake);
    const [authorization] = (await read(card, '/authorizations')).data;
    assert.deepEqual([authorization.status, authorization.held_amount], ['pending', 4_000]);
    assert.equal(await available(card), 6_000);
  });

  for (const { request, fault } of [
    { request: 'GET /real_time_decisions', fault: 'lost before acting' },
    { request: 'GET /real_time_decisions', fault: 'internal error' },
    { request: '/action', fault: 'lost before acting' },
    { request: '/action', fault: 'lost after acting' },
    { request: '/action', fault: 'internal error' },
    { request: '/action', fault: 'internal error after acting' },
  ] satisfies { request: string; fault: Fault }[]) {
    it(`are answered once although ${request} gets "${fault}"`, async () => {
      const card = await liveCard(stack);
      fake.faults.add({ fault, request, times: 1 });
      const payment = await authorize(fake, card);
      assert.notEqual(payment.elements[0]?.card_authorization ?? null, null);
      await untilRead(stack, fake);
      assert.equal(await available(card), 9_000);
    });
  }

  it('that we can not answer are declined by Increase, and hold nothing then', async () => {
    const card = await liveCard(stack);
    fake.simulations.decisionMs = IN_VAIN_MS;
    fake.faults.add({ fault: 'hang', request: '/action' });
    const payment = await authorize(fake, card);
    assert.equal(payment.elements[0]?.card_decline?.reason, 'webhook_timed_out');
    await untilRead(stack, fake);
    assert.equal(await available(card), 10_000);
    const posts = fake.delivery.answers.filter(({ category }) => category.startsWith('real_time_decision'));
    assert.notEqual(posts.at(-1)?.status, 200);
  });

  it('that we can not begin in time are declined while Increase still waits', async () => {
    const card = await liveCard(stack);
    fake.simulations.decisionMs = 10_000;
    {
      await using locker = await connectTo(ownerUrlOf(stack.config.databaseUrl));
      await locker.query('BEGIN');
      await locker.query('LOCK TABLE card IN ACCESS EXCLUSIVE MODE');
      const payment = await authorize(fake, card);
      assert.equal(payment.elements[0]?.card_decline?.reason, 'webhook_declined');
    }
    await untilRead(stack, fake);
    assert.equal(await available(card), 10_000);
  });

  it('that we can not even fetch change nothing here', async () => {
    const card = await liveCard(stack);
    fake.simulations.decisionMs = IN_VAIN_MS;
    fake.faults.add({ fault: 'internal error', request: 'GET /real_time_decisions' });
    await authorize(fake, card);
    assert.deepEqual((await read(card, '/authorizations')).data, []);
    assert.equal(await available(card), 10_000);
  });

  it('may be posted several times', async () => {
    const card = await liveCard(stack);
    fake.delivery.copies = 3;
    await authorize(fake, card);
    await untilRead(stack, fake);
    fake.delivery.copies = 1;
    assert.equal(await available(card), 9_000);
    const types = (await eventTypes(stack, card.cardId)).filter((type) =>
      type.startsWith('card.authorization'),
    );
    assert.deepEqual(types, ['card.authorization.created']);
  });

  it('and events with a wrong signature, or none, get 401 and change nothing', async () => {
    const card = await liveCard(stack);
    const url = `http://${stack.config.host}:${stack.config.port}${EVENTS_PATH}`;
    const bare = await fetch(url, { method: 'POST', body: '{}' });
    assert.equal(bare.status, 401);
    fake.simulations.decisionMs = IN_VAIN_MS;
    fake.delivery.signsWrongly = true;
    await authorize(fake, card);
    await fake.delivery.idle();
    fake.delivery.signsWrongly = false;
    assert.ok(fake.delivery.answers.slice(-3).every(({ status }) => status === 401));
    assert.equal(await available(card), 10_000);
    assert.deepEqual((await read(card, '/authorizations')).data, []);
  });

  it('of other kinds, and events about other things, are answered and not kept', async () => {
    const before = fake.requests.length;
    fake.bank.announce('card.updated', newId('card'));
    fake.bank.announce('transaction.created', newId('txn'));
    await untilRead(stack, fake);
    assert.deepEqual(
      fake.delivery.answers.slice(-2).map(({ status }) => status),
      [200, 200],
    );
    assert.equal(fake.requests.length, before);
  });
});

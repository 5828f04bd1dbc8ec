import assert from 'node:assert/strict';
import { AuthorizationResource } from '../../payments/authorization-resource.ts';
import { expectError } from '../support/api/answers.ts';
import { type AuthorizedCard, authorizedCard, onAuthorization } from '../support/authorizations.ts';
import { assertLedgerClean, balanceOf, fundedPartner } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';

describe('authorizations in test mode', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let card: AuthorizedCard;
  before(async () => {
    stack = await sharedStack();
    partner = await fundedPartner(stack, 100_000);
  });
  beforeEach(async () => {
    card = await authorizedCard(partner, 1_000);
  });
  after(() => assertLedgerClean(stack, partner));

  const total = async () => (await balanceOf(partner))[2] ?? Number.NaN;
  const events = async () =>
    (await partner.call('GET', '/events?limit=100')).json.data.filter(
      (event: { data: { card?: { id: string } } }) => event.data.card?.id === card.id,
    );
  /** Of its events, newest first. */
  const types = async () => (await events()).map(({ type }: { type: string }) => type);
  const authorized = async (amount: number) => {
    const { status, json, text } = await card.authorize(amount);
    assert.deepEqual([status, json.status], [201, 'pending'], text);
    return { ...onAuthorization(partner, json.id), id: json.id as string };
  };
  /** Status, amount, held and settled amount. */
  const stateOf = (json: AuthorizationResource) => [
    json.status,
    json.amount,
    json.held_amount,
    json.settled_amount,
  ];

  it('hold the amount on the card, and say so in an event', async () => {
    const before = await balanceOf(partner);
    const merchant = { merchant_name: 'Café', merchant_category_code: '5812' };
    const place = { merchant_city: 'Vienna', merchant_country: 'AT' };
    const { status, json } = await card.authorize(300, { ...merchant, ...place });
    assert.equal(status, 201);
    assert.deepEqual(json, {
      id: json.id,
      object: 'authorization',
      card_id: card.id,
      status: 'pending',
      amount: 300,
      held_amount: 300,
      settled_amount: 0,
      currency: 'USD',
      decline_reason: null,
      merchant: { name: 'Café', category_code: '5812', city: 'Vienna', country: 'AT' },
      requests: [
        {
          type: 'authorization',
          amount: 300,
          approved: true,
          decline_reason: null,
          created: json.created,
        },
      ],
      expires_at: json.expires_at,
      mode: 'test',
      created: json.created,
    });
    assert.deepEqual(AuthorizationResource.parse(json), json);
    assert.equal(Date.parse(json.expires_at) - Date.parse(json.created), 168 * 3_600_000);
    assert.deepEqual(await card.money(), [1_000, 700]);
    assert.deepEqual(await balanceOf(partner), before, 'what cards hold is not held of the balance');
    const [event] = await events();
    assert.equal(event.type, 'card.authorization.created');
    assert.deepEqual(event.data.authorization, json);
    assert.deepEqual([event.data.card.balance, event.data.card.available_balance], [1_000, 700]);
    assert.deepEqual(await onAuthorization(partner, json.id).read(), json);
    assert.deepEqual(await card.transactions(), []);
  });

  it('are declined above the available balance, as a transaction with a fee and two events', async () => {
    await authorized(900);
    const before = await total();
    const { status, json } = await card.authorize(101);
    assert.deepEqual([status, ...stateOf(json)], [201, 'declined', 101, 0, 0]);
    assert.deepEqual([json.decline_reason, json.expires_at], ['insufficient_card_balance', null]);
    assert.deepEqual(
      json.requests.map(({ approved, decline_reason }: AuthorizationResource['requests'][number]) => [
        approved,
        decline_reason,
      ]),
      [[false, 'insufficient_card_balance']],
    );
    const [decline, ...others] = await card.transactions();
    assert.deepEqual(others, []);
    assert.deepEqual(
      [decline.type, decline.amount, decline.authorization_id, decline.decline_reason],
      ['decline', 101, json.id, 'insufficient_card_balance'],
    );
    assert.deepEqual(
      [decline.fees, decline.card_amount, decline.partner_balance_amount],
      [[{ type: 'decline', amount: 25 }], 0, 0],
    );
    assert.equal(await total(), before - 25);
    const told = (await events()).slice(0, 2);
    assert.deepEqual(
      told.map(({ type }: { type: string }) => type),
      ['card.transaction.created', 'card.authorization.created'],
    );
    assert.deepEqual(told[0].data.transaction, decline);
    expectError(await onAuthorization(partner, json.id).capture(), 'invalid_state');
  });

  it('leave no more to purchases than is available', async () => {
    await authorized(800);
    const dear = await card.simulate({ type: 'purchase', amount: 201 });
    assert.deepEqual([dear.json.type, dear.json.decline_reason], ['decline', 'insufficient_card_balance']);
    const { json } = await card.simulate({ type: 'purchase', amount: 200 });
    assert.deepEqual([json.type, json.card_balance_after], ['purchase', 800]);
    assert.deepEqual([json.card_amount, json.partner_balance_amount, json.authorization_id], [200, 0, null]);
    assert.deepEqual(await card.money(), [800, 0]);
  });

  it('never hold more than the card has, however many ask at once', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => card.authorize(99)));
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201]));
    assert.equal(answers.filter(({ json }) => json.status === 'pending').length, 10);
    assert.deepEqual(await card.money(), [1_000, 10]);
    await assertLedgerClean(stack, partner);
  });

  describe('increments', () => {
    it('hold the additional amount, and leave the expiry as it is', async () => {
      const authorization = await authorized(300);
      const { expires_at } = await authorization.read();
      const { status, json } = await authorization.increment(200);
      assert.deepEqual([status, ...stateOf(json)], [200, 'pending', 500, 500, 0]);
      assert.deepEqual([json.requests.length, json.requests[1].type], [2, 'increment']);
      assert.equal(json.expires_at, expires_at);
      assert.deepEqual(await card.money(), [1_000, 500]);
      assert.equal((await events())[0].type, 'card.authorization.updated');
    });

    it('answer 409 after a hundred requests', async () => {
      const authorization = await authorized(1);
      for (let count = 1; count < 100; count++) assert.equal((await authorization.increment(1)).status, 200);
      assert.equal((await authorization.read()).requests.length, 100);
      expectError(await authorization.increment(1), 'invalid_state');
      assert.equal((await authorization.read()).amount, 100);
    });
  });

  describe('clearings', () => {
    it('take the amount from the hold, and send two events', async () => {
      const authorization = await authorized(300);
      const before = await total();
      const { status, json } = await authorization.capture();
      assert.equal(status, 201);
      assert.deepEqual([json.type, json.status, json.amount], ['purchase', 'settled', 300]);
      assert.deepEqual([json.charged_to, json.card_amount, json.partner_balance_amount], ['card', 300, 0]);
      assert.deepEqual([json.authorization_id, json.card_balance_after], [authorization.id, 700]);
      assert.deepEqual(json.fees, [{ type: 'transaction', amount: 12 }]);
      assert.equal(await total(), before - 12);
      assert.deepEqual(stateOf(await authorization.read()), ['closed', 300, 0, 300]);
      assert.deepEqual(await card.money(), [700, 700]);
      assert.deepEqual((await types()).slice(0, 2), [
        'card.transaction.created',
        'card.authorization.updated',
      ]);
    });

    it('release the rest if they are final', async () => {
      const authorization = await authorized(300);
      assert.equal((await authorization.capture({ amount: 100 })).json.card_balance_after, 900);
      assert.deepEqual(stateOf(await authorization.read()), ['closed', 300, 0, 100]);
      assert.deepEqual(await card.money(), [900, 900]);
    });

    it('keep the rest held if they are not, until all is cleared', async () => {
      const authorization = await authorized(300);
      await authorization.capture({ amount: 100, final: false });
      assert.deepEqual(stateOf(await authorization.read()), ['pending', 300, 200, 100]);
      assert.deepEqual(await card.money(), [900, 700]);
      assert.equal((await authorization.capture({ final: false })).json.amount, 200);
      assert.deepEqual(stateOf(await authorization.read()), ['closed', 300, 0, 300]);
      expectError(await authorization.capture(), 'validation_failed', ['amount']);
    });

    it('above the hold take the rest from the available balance, then from the prepaid one', async () => {
      const authorization = await authorized(300);
      const other = await authorized(500);
      const before = await total();
      const { json } = await authorization.capture({ amount: 900 });
      assert.deepEqual([json.charged_to, json.card_amount, json.partner_balance_amount], ['both', 500, 400]);
      assert.deepEqual([json.card_balance_after, await card.money()], [500, [500, 0]]);
      assert.deepEqual(stateOf(await authorization.read()), ['closed', 300, 0, 900]);
      assert.equal((await other.read()).held_amount, 500, 'what others hold stays');
      const [fee] = json.fees;
      assert.equal(await total(), before - 400 - fee.amount);
      const listed = (await partner.call('GET', '/balance/transactions?limit=2')).json.data;
      const source = { type: 'transaction', id: json.id };
      assert.deepEqual(
        listed.map(({ type, amount, source: of }: { type: string; amount: number; source: object }) => [
          type,
          amount,
          of,
        ]),
        [
          ['transaction_fee', -fee.amount, source],
          ['late_debit', -400, source],
        ],
      );
    });

    it('are booked on an authorization that has ended, which is closed then', async () => {
      const authorization = await authorized(300);
      await authorization.reverse();
      assert.deepEqual(stateOf(await authorization.read()), ['reversed', 0, 0, 0]);
      const { status, json } = await authorization.capture({ amount: 250 });
      assert.deepEqual([status, json.card_amount, json.card_balance_after], [201, 250, 750]);
      assert.deepEqual(stateOf(await authorization.read()), ['closed', 0, 0, 250]);
    });

    it('without an authorization are booked on any card that was issued', async () => {
      const { status, json } = await card.forceCapture(400, { merchant_country: 'DE' });
      assert.deepEqual([status, json.authorization_id, json.card_amount], [201, null, 400]);
      assert.equal(json.merchant.country, 'DE');
      await card.change('block');
      const late = (await card.forceCapture(50)).json;
      assert.deepEqual([late.charged_to, late.partner_balance_amount], ['partner_balance', 50]);
    });
  });

  describe('reversals', () => {
    it('give back a part, then all that is left', async () => {
      const authorization = await authorized(300);
      assert.deepEqual(stateOf((await authorization.reverse({ amount: 100 })).json), [
        'pending',
        200,
        200,
        0,
      ]);
      expectError(await authorization.reverse({ amount: 201 }), 'validation_failed', ['amount']);
      assert.deepEqual(stateOf((await authorization.reverse()).json), ['reversed', 0, 0, 0]);
      assert.deepEqual(await card.money(), [1_000, 1_000]);
      assert.equal((await events())[0].type, 'card.authorization.updated');
    });
  });

  it('that expire release what they hold, and keep their amount', async () => {
    const authorization = await authorized(300);
    const { status, json } = await authorization.expire();
    assert.deepEqual([status, ...stateOf(json)], [200, 'expired', 300, 0, 0]);
    assert.deepEqual(await card.money(), [1_000, 1_000]);
    for (const answer of [
      await authorization.expire(),
      await authorization.reverse(),
      await authorization.increment(1),
    ]) {
      expectError(answer, 'invalid_state');
      assert.match(answer.json.error.message, /expired/);
    }
  });

  describe('on a card that is blocked', () => {
    const release = async () =>
      (await partner.call('GET', '/balance/transactions?limit=1')).json.data.map(
        ({ type, amount, source }: { type: string; amount: number; source: object }) => [
          type,
          amount,
          source,
        ],
      );

    it('keep what they hold; the available balance alone is released', async () => {
      const authorization = await authorized(300);
      const { json } = await card.change('block');
      assert.deepEqual([json.status, json.balance, json.available_balance], ['blocked', 300, 0]);
      assert.deepEqual(await release(), [['card_release', 700, { type: 'card', id: card.id }]]);
      assert.equal((await authorization.read()).status, 'pending');
      assert.deepEqual(await card.money(), [300, 0]);
    });

    it('release what a reversal or an expiry frees, with no event of its own', async () => {
      const [first, second] = [await authorized(300), await authorized(200)];
      await card.change('block');
      await first.reverse({ amount: 100 });
      assert.deepEqual(await release(), [['card_release', 100, { type: 'card', id: card.id }]]);
      assert.deepEqual(await card.money(), [400, 0]);
      await first.reverse();
      await second.expire();
      assert.deepEqual(await release(), [['card_release', 200, { type: 'card', id: card.id }]]);
      assert.deepEqual(await card.money(), [0, 0]);
      assert.deepEqual((await types()).slice(0, 4), [
        'card.authorization.updated',
        'card.authorization.updated',
        'card.authorization.updated',
        'card.blocked',
      ]);
    });

    it('leave all of a forced purchase to the prepaid balance, and keep what they hold', async () => {
      await authorized(300);
      await card.change('block');
      const { json } = await card.simulate({ type: 'purchase', amount: 50, force: true });
      assert.deepEqual([json.charged_to, json.card_balance_after], ['partner_balance', 300]);
    });
  });

  it('stay pending on a card that is frozen, and can be cleared and reversed', async () => {
    const [first, second] = [await authorized(300), await authorized(200)];
    await card.change('freeze');
    const { json } = await first.increment(1);
    assert.deepEqual([json.status, json.requests[1].decline_reason], ['pending', 'card_frozen']);
    assert.equal((await first.capture()).status, 201);
    assert.equal((await second.reverse()).json.status, 'reversed');
  });
});

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { newId } from '../../platform/crypto/new-id.ts';
import { expectError, expectReplay } from '../support/api/answers.ts';
import { onAuthorization } from '../support/authorizations.ts';
import { createCard, settledCard } from '../support/cards.ts';
import { assertLedgerClean, fundedPartner } from '../support/money.ts';
import { environmentOf, type Operate, operateIn } from '../support/operator/operate.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { Answer, TestPartner, TestStack } from '../support/stack.ts';

const NONE = {
  allowed_categories: null,
  blocked_categories: null,
  allowed_merchant_countries: null,
  blocked_merchant_countries: null,
  spending_limits: null,
};

describe('spending controls', () => {
  let stack: TestStack;
  let operate: Operate;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack();
    operate = operateIn(environmentOf(stack.config));
    partner = await fundedPartner(stack, 500_000);
  });
  after(() => assertLedgerClean(stack, partner));

  /** A test card with controls, and what merchants do with it. */
  async function controlled(controls: object | null, from: TestPartner = partner) {
    const card = await createCard(from, { amount: 10_000, spending_controls: controls });
    assert.equal(card.status, 201, card.text);
    const { id } = card.json;
    const post = (path: string, body: object) => from.call('POST', path, { body });
    return {
      id: id as string,
      json: card.json,
      authorize: (amount: number, merchant: object = {}) =>
        post(`/test/cards/${id}/authorizations`, { amount, ...merchant }),
      purchase: (amount: number, more: object = {}) =>
        post(`/test/cards/${id}/simulate-transaction`, { type: 'purchase', amount, ...more }),
      refund: (amount: number, more: object = {}) =>
        post(`/test/cards/${id}/simulate-transaction`, { type: 'refund', amount, ...more }),
      forceCapture: (amount: number, more: object = {}) =>
        post(`/test/cards/${id}/force-capture`, { amount, ...more }),
      update: (body: object) => from.call('PATCH', `/cards/${id}`, { body }),
      limits: async () => (await from.call('GET', `/cards/${id}/spending-limits`)).json.data,
      spent: async () =>
        (await from.call('GET', `/cards/${id}/spending-limits`)).json.data.map(
          ({ spent }: { spent: number }) => spent,
        ),
    };
  }
  const dailyLimit = (amount: number) => ({ spending_limits: [{ amount, interval: 'daily' }] });
  const reasonOf = ({ status, json, text }: Answer) => {
    assert.equal(status, 201, text);
    return json.decline_reason;
  };

  it('are stored with a card, shown with every field, and replaced whole', async () => {
    const card = await controlled({ blocked_categories: ['7995'], ...dailyLimit(500) });
    const limits = [{ amount: 500, interval: 'daily', categories: null }];
    assert.deepEqual(card.json.spending_controls, {
      ...NONE,
      blocked_categories: ['7995'],
      spending_limits: limits,
    });
    const changed = await card.update({ spending_controls: { allowed_merchant_countries: ['AT'] } });
    assert.equal(changed.status, 200, changed.text);
    assert.deepEqual(changed.json.spending_controls, { ...NONE, allowed_merchant_countries: ['AT'] });
    const { json } = await partner.call('GET', `/cards/${card.id}`);
    assert.deepEqual(json.spending_controls, changed.json.spending_controls);
    const named = await card.update({ card_name: 'Ads' });
    assert.deepEqual(named.json.spending_controls, changed.json.spending_controls);
    const removed = await card.update({ spending_controls: null });
    assert.equal(removed.json.spending_controls, null);
  });

  it('without any restriction are none', async () => {
    const card = await controlled({ allowed_categories: null });
    assert.equal(card.json.spending_controls, null);
    assert.equal((await controlled(null)).json.spending_controls, null);
    const cleared = await card.update({ spending_controls: {} });
    assert.deepEqual([cleared.status, cleared.json.spending_controls], [200, null]);
  });

  it('send an event if they changed, and none if not', async () => {
    const card = await controlled({ allowed_merchant_countries: ['AT'], ...dailyLimit(5) });
    const updates = async () =>
      (await partner.call('GET', '/events?type=card.updated')).json.data.filter(
        (event: { data: { card: { id: string } } }) => event.data.card.id === card.id,
      );
    await card.update({ spending_controls: { ...dailyLimit(5), allowed_merchant_countries: ['AT'] } });
    assert.deepEqual(await updates(), []);
    const { json } = await card.update({ spending_controls: dailyLimit(6) });
    const [event, ...others] = await updates();
    assert.deepEqual(others, []);
    assert.deepEqual(event.data.card, json);
  });

  it('are stored with a live card as well, which keeps them while it is pending and afterwards', async () => {
    const live = await fundedPartner(stack, 100_000);
    const key = randomUUID();
    const body = { amount: 1_000, external_ref: key, spending_controls: dailyLimit(700) };
    const created = await live.call('POST', '/cards', { body, idempotencyKey: key, mode: 'live' });
    assert.ok([201, 202].includes(created.status), created.text);
    const card = await settledCard(live, created.json.id);
    assert.equal(card.status, 'active');
    assert.deepEqual(card.spending_controls.spending_limits, [
      { amount: 700, interval: 'daily', categories: null },
    ]);
    const again = await live.call('POST', '/cards', { body, idempotencyKey: key, mode: 'live' });
    expectReplay(again, created);
  });

  for (const [what, controls, paths] of [
    [
      'both lists of a pair',
      { allowed_categories: ['5812'], blocked_categories: ['5411'] },
      ['spending_controls.allowed_categories', 'spending_controls.blocked_categories'],
    ],
    ['an empty list', { blocked_merchant_countries: [] }, ['spending_controls.blocked_merchant_countries']],
    ['a duplicate', { blocked_categories: ['5812', '5812'] }, ['spending_controls.blocked_categories']],
    ['an unknown field', { categories: ['5812'] }, ['spending_controls.categories']],
    [
      'an unknown field of a limit',
      { spending_limits: [{ amount: 1, interval: 'daily', currency: 'USD' }] },
      ['spending_controls.spending_limits.0.currency'],
    ],
    [
      'a country in small letters',
      { allowed_merchant_countries: ['AT', 'de'] },
      ['spending_controls.allowed_merchant_countries.1'],
    ],
    [
      'a limit of 0',
      { spending_limits: [{ amount: 0, interval: 'daily' }] },
      ['spending_controls.spending_limits.0.amount'],
    ],
    ['text', 'none', ['spending_controls']],
    ['a list', [], ['spending_controls']],
  ] as const) {
    it(`get 400 for ${what}, which names it`, async () => {
      const card = await controlled(null);
      expectError(await card.update({ spending_controls: controls }), 'validation_failed', paths);
      const created = await createCard(partner, { amount: 1_000, spending_controls: controls });
      expectError(created, 'validation_failed', paths);
    });
  }

  it('decline by category, country and limit, in this order, with a fee and all the events', async () => {
    const card = await controlled({
      blocked_categories: ['7995'],
      allowed_merchant_countries: ['AT'],
      ...dailyLimit(100),
    });
    const at = (category: string, country: string) => ({
      merchant_category_code: category,
      merchant_country: country,
    });
    assert.equal(reasonOf(await card.authorize(101, at('7995', 'DE'))), 'merchant_category_not_allowed');
    assert.equal(reasonOf(await card.authorize(101, at('5812', 'DE'))), 'merchant_country_not_allowed');
    assert.equal(reasonOf(await card.authorize(101, at('5812', 'AT'))), 'spending_limit_exceeded');
    assert.equal(reasonOf(await card.purchase(101, at('5812', 'AT'))), 'spending_limit_exceeded');
    assert.equal(reasonOf(await card.authorize(100, at('5812', 'AT'))), null);
    const { json } = await partner.call('GET', `/cards/${card.id}/transactions`);
    const [decline] = json.data;
    assert.deepEqual(
      [decline.type, decline.decline_reason, decline.fees],
      ['decline', 'spending_limit_exceeded', [{ type: 'decline', amount: 25 }]],
    );
  });

  it('are decided after the status of the card and before its balance', async () => {
    const card = await controlled({ blocked_categories: ['7995'] });
    const casino = { merchant_category_code: '7995' };
    assert.equal(reasonOf(await card.authorize(20_000, casino)), 'merchant_category_not_allowed');
    assert.equal(reasonOf(await card.authorize(20_000)), 'insufficient_card_balance');
    await partner.call('POST', `/cards/${card.id}/freeze`);
    assert.equal(reasonOf(await card.authorize(20_000, casino)), 'card_frozen');
  });

  it('refuse a merchant without code or country by an allow list, and let it pass a block list', async () => {
    const allowing = await controlled({ allowed_categories: ['5812'], allowed_merchant_countries: ['AT'] });
    assert.equal(reasonOf(await allowing.authorize(1)), 'merchant_category_not_allowed');
    const dining = { merchant_category_code: '5812' };
    assert.equal(reasonOf(await allowing.authorize(1, dining)), 'merchant_country_not_allowed');
    assert.equal(reasonOf(await allowing.authorize(1, { ...dining, merchant_country: 'AT' })), null);
    const blocking = await controlled({ blocked_categories: ['5812'], blocked_merchant_countries: ['AT'] });
    assert.equal(reasonOf(await blocking.authorize(1)), null);
  });

  it('count authorizations and purchases less refunds, and count earlier ones for a new limit', async () => {
    const card = await controlled(null);
    await card.authorize(100);
    await card.purchase(50);
    await card.forceCapture(7);
    await card.refund(20);
    await card.update({ spending_controls: dailyLimit(200) });
    assert.deepEqual(await card.spent(), [137]);
    assert.equal(reasonOf(await card.purchase(64)), 'spending_limit_exceeded');
    assert.equal(reasonOf(await card.purchase(63)), null);
    assert.deepEqual(await card.spent(), [200]);
    await card.update({ spending_controls: dailyLimit(300) });
    assert.deepEqual(await card.spent(), [200], 'a changed amount keeps what was spent');
    await card.refund(500);
    assert.deepEqual(await card.spent(), [0], 'refunds give back no more than was spent');
  });

  it('count what is authorized while it is pending, and what was cleared afterwards', async () => {
    const card = await controlled(dailyLimit(1_000));
    const one = onAuthorization(partner, (await card.authorize(100)).json.id);
    assert.deepEqual(await card.spent(), [100]);
    await one.increment(50);
    assert.deepEqual(await card.spent(), [150]);
    await one.reverse({ amount: 30 });
    assert.deepEqual(await card.spent(), [120]);
    await one.capture({ amount: 40, final: false });
    assert.deepEqual(await card.spent(), [120]);
    await one.capture({ amount: 10 });
    assert.deepEqual(await card.spent(), [50]);
    await one.capture({ amount: 200 });
    assert.deepEqual(await card.spent(), [250], 'a clearing after the end counts in full');
    const two = onAuthorization(partner, (await card.authorize(300)).json.id);
    await two.expire();
    assert.deepEqual(await card.spent(), [250]);
    await card.authorize(5_000);
    assert.deepEqual(await card.spent(), [250], 'a declined one does not count');
  });

  it('never decline a clearing, so that a limit can be exceeded by it', async () => {
    const card = await controlled({ ...dailyLimit(100), blocked_categories: ['7995'] });
    const { json } = await card.authorize(100);
    const cleared = await onAuthorization(partner, json.id).capture({ amount: 150 });
    assert.equal(cleared.status, 201, cleared.text);
    const forced = await card.forceCapture(25, { merchant_category_code: '7995' });
    assert.deepEqual([forced.status, forced.json.type], [201, 'purchase']);
    const [limit] = await card.limits();
    assert.deepEqual([limit.spent, limit.remaining], [175, 0]);
    assert.equal(reasonOf(await card.authorize(1)), 'spending_limit_exceeded');
  });

  it('compare an authorization with its increments with a limit per authorization', async () => {
    const controls = { spending_limits: [{ amount: 100, interval: 'per_authorization' }] };
    const card = await controlled(controls);
    assert.equal(reasonOf(await card.authorize(101)), 'spending_limit_exceeded');
    assert.equal(reasonOf(await card.purchase(101)), 'spending_limit_exceeded');
    const { json } = await card.authorize(60);
    const one = onAuthorization(partner, json.id);
    const declined = await one.increment(41);
    assert.equal(declined.json.amount, 60);
    assert.equal(declined.json.requests.at(-1).decline_reason, 'spending_limit_exceeded');
    assert.equal((await one.increment(40)).json.amount, 100);
    assert.equal(reasonOf(await card.authorize(100)), null, 'each authorization by itself');
  });

  it('count only merchants with the categories of a limit, refunds too', async () => {
    const limit = { amount: 100, interval: 'all_time', categories: ['5812', '5411'] };
    const card = await controlled({ spending_limits: [limit] });
    const dining = { merchant_category_code: '5812' };
    await card.authorize(60, dining);
    await card.authorize(500);
    await card.refund(10);
    await card.refund(20, dining);
    assert.deepEqual(await card.spent(), [40]);
    assert.equal(reasonOf(await card.authorize(61, dining)), 'spending_limit_exceeded');
    assert.equal(reasonOf(await card.authorize(60, { merchant_category_code: '5411' })), null);
  });

  it('are listed as limits of the card, then of the account, with when each resets', async () => {
    const own = await fundedPartner(stack, 100_000);
    const limits = (amount: number) =>
      ['per_authorization', 'daily', 'weekly', 'monthly', 'yearly', 'all_time'].map((interval) => ({
        amount,
        interval,
      }));
    const account = JSON.stringify({ spending_limits: limits(900).slice(1, 2) });
    assert.equal((await operate('partner', 'controls', own.id, '--set', account)).code, 0);
    const card = await controlled({ spending_limits: limits(800) }, own);
    await card.authorize(300);
    const now = new Date();
    const [year, month, day] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()];
    const monday = day + 7 - ((now.getUTCDay() + 6) % 7);
    const resets = [
      null,
      new Date(Date.UTC(year, month, day + 1)).toISOString(),
      new Date(Date.UTC(year, month, monday)).toISOString(),
      new Date(Date.UTC(year, month + 1)).toISOString(),
      new Date(Date.UTC(year + 1, 0)).toISOString(),
      null,
    ];
    const { status, json } = await own.call('GET', `/cards/${card.id}/spending-limits`);
    assert.equal(status, 200);
    assert.deepEqual([json.object, json.has_more, json.next_cursor], ['list', false, null]);
    const shown = (source: string, amount: number) =>
      limits(amount).map(({ interval }, index) => ({
        object: 'spending_limit',
        source,
        amount,
        interval,
        categories: null,
        spent: interval === 'per_authorization' ? 0 : 300,
        remaining: interval === 'per_authorization' ? amount : amount - 300,
        resets_at: resets[index],
      }));
    assert.deepEqual(json.data, [...shown('card', 800), ...shown('account', 900).slice(1, 2)]);
    expectError(await own.call('GET', `/cards/${card.id}/spending-limits?limit=5`), 'validation_failed', [
      'limit',
    ]);
  });

  it('give an empty list for a card without limits, and 404 for another account’s card', async () => {
    const card = await controlled(null);
    assert.deepEqual(await card.limits(), []);
    const other = await fundedPartner(stack, 100);
    expectError(await other.call('GET', `/cards/${card.id}/spending-limits`), 'card_not_found');
    expectError(await partner.call('GET', '/cards/x/spending-limits'), 'card_not_found');
    const unknown = newId('card');
    expectError(await partner.call('GET', `/cards/${unknown}/spending-limits`), 'card_not_found');
  });

  it('of the account hold for each card by itself, also for cards that were there before', async () => {
    const own = await fundedPartner(stack, 100_000);
    const [first, second] = [await controlled(null, own), await controlled(dailyLimit(50), own)];
    await first.authorize(60);
    const account = { ...dailyLimit(100), blocked_categories: ['7995'] };
    const set = await operate('partner', 'controls', own.id, '--set', JSON.stringify(account));
    assert.deepEqual(set.json.spending_controls.blocked_categories, ['7995'], set.err);
    assert.equal(reasonOf(await first.authorize(41)), 'spending_limit_exceeded');
    assert.equal(reasonOf(await first.authorize(40)), null);
    assert.equal(reasonOf(await second.authorize(51)), 'spending_limit_exceeded');
    assert.equal(reasonOf(await second.authorize(50)), null);
    const casino = { merchant_category_code: '7995' };
    assert.equal(reasonOf(await second.authorize(1, casino)), 'merchant_category_not_allowed');
    assert.equal((await operate('partner', 'controls', own.id, '--clear')).json.spending_controls, null);
    assert.equal(reasonOf(await first.authorize(41, casino)), null);
  });

  it('never let 20 requests at once pass a limit', async () => {
    const card = await controlled(dailyLimit(1_000));
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? card.authorize(150) : card.purchase(150))),
    );
    const approved = answers.filter((answer) => reasonOf(answer) === null);
    assert.equal(approved.length, 6);
    assert.deepEqual(await card.spent(), [900]);
  });

  it('never let 20 requests at once pass a limit that no request has counted towards yet', async () => {
    const card = await controlled(null);
    await card.purchase(400);
    await card.update({ spending_controls: dailyLimit(1_000) });
    const answers = await Promise.all(Array.from({ length: 20 }, () => card.authorize(150)));
    assert.equal(answers.filter((answer) => reasonOf(answer) === null).length, 4);
    assert.deepEqual(await card.spent(), [1_000]);
  });
});

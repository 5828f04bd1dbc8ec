import assert from 'node:assert/strict';
import { expectError } from '../support/api/answers.ts';
import { onAuthorization } from '../support/authorizations.ts';
import { createCard } from '../support/cards.ts';
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

  /** What else is refused is in test/unit/domain/spending-controls.test.ts. */
  it('get 400 for both lists of a pair, which names them', async () => {
    const spending_controls = { allowed_categories: ['5812'], blocked_categories: ['5411'] };
    const paths = ['spending_controls.allowed_categories', 'spending_controls.blocked_categories'];
    const card = await controlled(null);
    expectError(await card.update({ spending_controls }), 'validation_failed', paths);
    const created = await createCard(partner, { amount: 1_000, spending_controls });
    expectError(created, 'validation_failed', paths);
  });

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

  it('count authorizations and purchases less refunds, and count earlier ones for a new limit', async () => {
    const card = await controlled(null);
    assert.deepEqual(await card.limits(), []);
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

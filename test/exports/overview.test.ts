import assert from 'node:assert/strict';
import type { OverviewResource } from '../../exports/overview-resource.ts';
import { expectError } from '../support/api/answers.ts';
import { withNewKey } from '../support/api/keys.ts';
import { post } from '../support/api/post.ts';
import { createCard } from '../support/cards.ts';
import { fundedPartner } from '../support/money.ts';
import { closeAllDays, DAY } from '../support/monthly-statements.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';
import { advanceClock } from '../support/test-clock.ts';

describe('GET /overview', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack('api');
  });
  beforeEach(async () => {
    partner = await fundedPartner(stack);
  });

  const read = async (): Promise<OverviewResource> => {
    const { status, json, text } = await partner.call('GET', '/overview');
    assert.equal(status, 200, text);
    return json;
  };
  const today = async () => (await read()).days.at(-1) ?? assert.fail();
  const issue = async (amount = 1_000): Promise<string> => (await createCard(partner, { amount })).json.id;
  const spend = (cardId: string, type: string, amount: number) =>
    post(partner, `/test/cards/${cardId}/simulate-transaction`, { type, amount });

  it('counts cards by status, however they came to it', async () => {
    const [one, two] = [await issue(), await issue(), await issue()];
    await post(partner, `/cards/${one}/freeze`);
    await post(partner, `/cards/${two}/block`);
    const { cards } = await read();
    assert.deepEqual(cards, { funding_pending: 0, active: 1, frozen: 1, blocked: 1, failed: 0 });
    await post(partner, `/cards/${one}/unfreeze`);
    assert.deepEqual((await read()).cards, { ...cards, active: 2, frozen: 0 });
    const live = await partner.call('GET', '/overview', { mode: 'live' });
    assert.deepEqual(Object.values(live.json.cards), [0, 0, 0, 0, 0]);
  });

  it('has as many of each status as there are rows, when many change at once', async () => {
    const ids = await Promise.all([1, 2, 3, 4, 5, 6].map(() => issue()));
    await Promise.all(ids.slice(0, 4).map((id) => post(partner, `/cards/${id}/freeze`)));
    await Promise.all(ids.slice(2, 5).map((id) => post(partner, `/cards/${id}/block`)));
    const { cards } = await read();
    assert.deepEqual(cards, { funding_pending: 0, active: 1, frozen: 2, blocked: 3, failed: 0 });
  });

  it('adds up today, and every day as its statement does, before and after it is closed', async () => {
    const id = await issue(10_000);
    await spend(id, 'purchase', 4_000);
    await spend(id, 'refund', 1_500);
    const made = await post(partner, `/test/cards/${id}/authorizations`, { amount: 3_000 });
    await post(partner, `/test/authorizations/${made.id}/capture`, { amount: 2_000 });
    const balance = (await partner.call('GET', '/balance')).json.total;
    const { date, ...first } = await today();
    assert.deepEqual(first, { closing_balance: balance, spent: 6_000, refunded: 1_500 });
    await advanceClock(partner, 2 * DAY);
    await spend(id, 'purchase', 100);
    await post(partner, '/test/credit', { amount: 50 });
    const open = await read();
    assert.deepEqual(open.days.slice(-3), [
      { date, closing_balance: balance, spent: 6_000, refunded: 1_500 },
      { date: dayAfter(date), closing_balance: balance, spent: 0, refunded: 0 },
      { ...(await today()), spent: 100, refunded: 0 },
    ]);
    assert.equal(open.days.length, 30);
    assert.equal(open.days[0]?.closing_balance, 0);
    await closeAllDays(stack);
    assert.deepEqual(await read(), open);
    const days = 'SELECT DISTINCT day::text FROM account_day WHERE partner_id = $1';
    const last = open.days.at(-1);
    assert.deepEqual(await asOwner(stack, days, [partner.id]), [{ day: last?.date }]);
    await advanceClock(partner, 40 * DAY);
    for (const { spent, closing_balance } of (await read()).days)
      assert.deepEqual([spent, closing_balance], [0, last?.closing_balance]);
  });

  it('counts what waits', async () => {
    for (const payment of ['none', 'short'])
      await post(partner, '/test/deposits', { amount: 5_000, payment });
    assert.deepEqual([(await read()).deposits_waiting, (await read()).pending_operations], [2, 0]);
    await issue();
    const review = "UPDATE idempotency_claim SET operation_status = 'awaiting_review' WHERE partner_id = $1";
    await asOwner(stack, review, [partner.id]);
    const { json } = await partner.call('GET', '/operations');
    assert.equal((await read()).pending_operations, json.data.length);
  });

  it('needs both scopes', async () => {
    for (const scope of ['cards:read', 'balance:read'] as const) {
      const restricted = await withNewKey(stack, partner, { scopes: [scope] });
      expectError(await restricted.call('GET', '/overview'), 'insufficient_scope');
    }
  });
});

const dayAfter = (date: string) => new Date(Date.parse(date) + DAY * 1_000).toISOString().slice(0, 10);

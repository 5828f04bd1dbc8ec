import assert from 'node:assert/strict';
import { adjustBalance } from '../../accounts/adjust-balance.ts';
import type { AccountLimits } from '../../accounts/limits-rules.ts';
import { negotiateLimits } from '../../accounts/partners.ts';
import type { Mode } from '../../domain/mode.ts';
import { expectError } from '../support/api/answers.ts';
import { createCard, settledCard } from '../support/cards.ts';
import { balanceOf } from '../support/money.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { Answer, TestStack } from '../support/stack.ts';
import { type Cardholder, cardholder, settledTopUp, transfer } from '../support/transfers.ts';

const FUNDS = 10_000_000;

/** What loads a card, each beside a card of 1,000 cents that was made today. */
const KINDS: Record<string, (holder: Cardholder, amount: number) => Promise<Answer>> = {
  cards: ({ partner, mode }, amount) => createCard(partner, { amount }, { mode }),
  'top-ups': (holder, amount) => transfer('topup', holder, amount),
};

describe('the limits of', () => {
  let stack: TestStack;
  let test: Cardholder;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    test = await cardholder(stack, 'test', FUNDS);
    const { id: partnerId } = test.partner;
    const funds = { mode: 'live' as const, amountCents: FUNDS, reason: 'a test', key: null };
    await adjustBalance(stack.operator, { partnerId, ...funds });
  });

  const limit = ({ partner }: Cardholder, changes: Partial<AccountLimits>) =>
    negotiateLimits(stack.operator, partner.id, changes);
  const live = () => cardholder(stack, 'live', FUNDS);
  const refused = async (answer: Promise<Answer>, message: RegExp) => {
    expectError(await answer, 'limit_exceeded');
    assert.match((await answer).json.error.message, message);
  };
  const create = ({ partner }: Cardholder, amount: number, mode: Mode = 'test') =>
    createCard(partner, { amount }, { mode });

  for (const [kind, load] of Object.entries(KINDS)) {
    it(`${kind} are 100 to 1,000,000 cents unless others are set for the account, both ends included`, async () => {
      const areLimits = async (least: number, most: number) => {
        await refused(load(test, least - 1), new RegExp(`amount must be at least ${least} cents`));
        await refused(load(test, most + 1), new RegExp(`amount must be at most ${most} cents`));
        for (const amount of [least, most]) assert.equal((await load(test, amount)).status, 201);
      };
      await areLimits(100, 1_000_000);
      await limit(test, { minCardCents: 7, maxCardCents: 9 });
      await areLimits(7, 9);
    });

    it(`${kind} count the cents of each UTC day in each mode, up to the last one, and start again with the next`, async () => {
      await limit(test, { maxIssuedPerDayCents: 5_000 });
      assert.equal((await load(test, 1_000)).status, 201);
      await refused(load(test, 3_001), /can load 5000 cents per UTC day and has loaded 2000 today/);
      assert.equal((await load(test, 3_000)).status, 201);
      await refused(load(test, 100), /has loaded 5000/);
      await refused(create(test, 100), /has loaded 5000/);
      const other = 'UPDATE account_usage SET loaded_on = loaded_on - 1 WHERE partner_id = $1';
      await asOwner(stack, other, [test.partner.id]);
      assert.equal((await load(test, 5_000)).status, 201);
      await refused(load(test, 100), /has loaded 5000/);
      assert.equal((await create(test, 5_000, 'live')).status, 201);
    });

    it(`${kind} count what is pending, and not what has failed or was refused`, async () => {
      const holder = await live();
      await limit(holder, { maxOpenCards: 2, maxIssuedPerDayCents: 3_000 });
      const failing = await load(holder, 1_943);
      assert.equal(failing.status, 202);
      await refused(load(holder, 100), kind === 'cards' ? /2 open cards/ : /has loaded 2943/);
      const { id } = failing.json;
      const ended = kind === 'cards' ? await settledCard(holder.partner, id) : await settledTopUp(holder, id);
      assert.equal(ended.status, 'failed');
      expectError(await load(holder, 1_942), 'provider_declined');
      assert.equal((await load(holder, 2_000)).status, 201);
      await refused(load(holder, 100), /has loaded 3000|2 open cards/);
    });

    it(`${kind} hold for simultaneous requests`, async () => {
      await limit(test, { maxOpenCards: 5, maxIssuedPerDayCents: 4_000 });
      const answers = await Promise.all(Array.from({ length: 20 }, () => load(test, 1_000)));
      const count = (wanted: number) => answers.filter(({ status }) => status === wanted).length;
      assert.deepEqual([count(201), count(422)], [3, 17]);
    });
  }

  it('cards are checked before the balance, and leave nothing of a refused request but its response', async () => {
    const poor = { ...test, partner: await stack.createPartner() };
    expectError(await create(poor, 99), 'limit_exceeded');
    expectError(await create(poor, 100), 'insufficient_funds');
    await refused(create(test, 99), /must be at least 100 cents/);
    assert.deepEqual(await balanceOf(test.partner), [FUNDS, 0, FUNDS]);
    for (const path of ['/cards', '/events'])
      assert.equal((await test.partner.call('GET', path)).json.data.length, 1, 'its card');
  });

  it('open cards count those that are pending or active, in each mode separately, and no top-up', async () => {
    await limit(test, { maxOpenCards: 2 });
    assert.equal((await create(test, 1_047, 'live')).status, 202);
    assert.equal((await transfer('topup', test, 1_000)).status, 201);
    assert.equal((await create(test, 1_000)).status, 201);
    await refused(create(test, 1_000), /can have 2 open cards and already has 2/);
    assert.equal((await create(test, 1_000, 'live')).status, 201);
    await refused(create(test, 1_000, 'live'), /2 open cards/);
  });

  it('a day count the completed top-ups of a blocked card, and not the pending ones', async () => {
    const holder = await live();
    assert.equal((await transfer('topup', holder, 1_000)).status, 201);
    assert.equal((await transfer('topup', holder, 1_047)).status, 202);
    const blocked = await holder.partner.call('POST', `/cards/${holder.cardId}/block`, { mode: 'live' });
    assert.equal(blocked.status, 200, blocked.text);
    await limit(holder, { maxIssuedPerDayCents: 2_500 });
    await refused(create(holder, 501, 'live'), /has loaded 2000/);
  });
});

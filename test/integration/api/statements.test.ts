import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { checkBooks } from '../../../commands/monitoring/check-books.ts';
import { closeMonths } from '../../../commands/statements/close-months.ts';
import { query } from '../../../db/sql.ts';
import { expectError } from '../../support/api/answers.ts';
import { createCard } from '../../support/cards.ts';
import { assertLedgerClean, fundedPartner } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';

const DAY = 86_400;
const RUNS = 12;

describe('GET /statements/{month}', function () {
  this.timeout(240_000);
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await startTestStack({});
  });
  beforeEach(async () => {
    partner = await fundedPartner(stack);
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stack.stop();
  });

  const monthAt = (time: string | number) => new Date(time).toISOString().slice(0, 7);
  const thisMonth = async () => monthAt((await partner.call('GET', '/test/clock')).json.now);
  const statement = async (month: string, mode: 'test' | 'live' = 'test') => {
    const { status, json, text } = await partner.call('GET', `/statements/${month}`, { mode });
    assert.equal(status, 200, text);
    return json;
  };
  const advance = async (seconds: number) => {
    const { status, text } = await partner.call('POST', '/test/clock/advance', { body: { seconds } });
    assert.equal(status, 200, text);
  };
  async function post(path: string, body?: object): Promise<void> {
    const { status, text } = await partner.call('POST', path, { body, idempotencyKey: randomUUID() });
    // Money that is not there, a blocked card, a limit.
    assert.ok(status < 300 || [402, 409, 422].includes(status), text);
  }
  /** All items of a list, the oldest first. */
  async function all(path: string) {
    // biome-ignore lint/suspicious/noExplicitAny: items of any list.
    const items: any[] = [];
    for (let after = ''; ; after = `&starting_after=${items.at(-1).id}`) {
      const { json } = await partner.call('GET', `${path}?limit=100${after}`);
      items.push(...json.data);
      if (!json.has_more) return items.reverse();
    }
  }
  const close = async () => {
    while ((await closeMonths(stack.orm, { graceMs: 0 })) > 0);
  };

  it('says what changed the balance and the cards, by type, in the order of the types', async () => {
    const { json: card } = await createCard(partner, { amount: 10_000 });
    const path = `/test/cards/${card.id}/simulate-transaction`;
    await post('/test/credit', { amount: 700 });
    await post('/test/credit', { amount: 300 });
    await post(`/cards/${card.id}/topups`, { amount: 5_000 });
    await post(path, { type: 'purchase', amount: 4_000 });
    await post(path, { type: 'refund', amount: 1_500 });
    await post(`/cards/${card.id}/withdrawals`, { amount: 2_000 });
    const month = await thisMonth();
    const changes = await all('/balance/transactions');
    const of = (type: string) => {
      const found = changes.filter((change) => change.type === type);
      return { type, count: found.length, amount: found.reduce((sum, { amount }) => sum + amount, 0) };
    };
    assert.deepEqual(await statement(month), {
      object: 'statement',
      month,
      opening_balance: 0,
      closing_balance: (await partner.call('GET', '/balance')).json.total,
      lines: [
        { type: 'faucet_credit', count: 2, amount: 1_000 },
        { type: 'card_issue', count: 1, amount: -10_000 },
        { type: 'card_topup', count: 1, amount: -5_000 },
        { type: 'card_withdrawal', count: 1, amount: 2_000 },
        of('card_activation_fee'),
        of('card_funding_fee'),
        of('transaction_fee'),
        { type: 'adjustment', count: 1, amount: 1_000_000 },
      ],
      cards: {
        opening_balance: 0,
        loaded: 15_000,
        spent: 4_000,
        refunded: 1_500,
        released: 2_000,
        closing_balance: 10_500,
      },
      mode: 'test',
    });
    const live = await statement(month, 'live');
    assert.deepEqual(live.lines, [{ type: 'adjustment', count: 1, amount: 1_000_000 }]);
    assert.equal(live.mode, 'live');
  });

  it('counts what an authorization cleared as spent, and what a block moved back as released', async () => {
    const { json: card } = await createCard(partner, { amount: 10_000 });
    const made = await partner.call('POST', `/test/cards/${card.id}/authorizations`, {
      body: { amount: 6_000 },
    });
    const month = await thisMonth();
    assert.deepEqual((await statement(month)).cards, {
      ...{ opening_balance: 0, loaded: 10_000, spent: 0, refunded: 0, released: 0, closing_balance: 10_000 },
    });
    await post(`/test/authorizations/${made.json.id}/capture`, { amount: 2_500 });
    await post(`/cards/${card.id}/block`);
    assert.deepEqual((await statement(month)).cards, {
      ...{
        opening_balance: 0,
        loaded: 10_000,
        spent: 2_500,
        refunded: 0,
        released: 7_500,
        closing_balance: 0,
      },
    });
  });

  it('is of an empty month if nothing happened, also long before the account, and shows no other account', async () => {
    const empty = await stack.createPartner();
    await createCard(partner, { amount: 1_000 });
    for (const month of ['0001-01', '1969-12', '2020-02', await thisMonth()]) {
      const { status, json } = await empty.call('GET', `/statements/${month}`);
      assert.equal(status, 200);
      assert.deepEqual(
        [json.opening_balance, json.closing_balance, json.lines, json.cards.closing_balance],
        [0, 0, [], 0],
      );
    }
  });

  for (const month of [
    '2026-13',
    '2026-00',
    '2026-1',
    '2026-001',
    '0000-01',
    '26-01',
    '2026',
    'x',
    '2026-10-01',
    '9999-12',
    '%20',
    '2026-1%30%00',
    "2026-01'",
  ]) {
    it(`answers 404 for ${month}`, async () => {
      expectError(await partner.call('GET', `/statements/${month}`), 'statement_not_found');
    });
  }

  it('is there for a month as soon as it begins by the account’s clock', async () => {
    const { json } = await partner.call('GET', '/test/clock');
    const now = new Date(json.now);
    const next = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1));
    expectError(await partner.call('GET', `/statements/${monthAt(next.getTime())}`), 'statement_not_found');
    await advance(Math.ceil((next.getTime() - now.getTime()) / 1_000));
    const opened = await statement(monthAt(next.getTime()));
    assert.deepEqual([opened.opening_balance, opened.lines], [1_000_000, []]);
    expectError(
      await partner.call('GET', `/statements/${monthAt(next.getTime())}`, { mode: 'live' }),
      'statement_not_found',
    );
  });

  it('answers 400 for an unknown parameter', async () => {
    expectError(await partner.call('GET', '/statements/2026-10?limit=1'), 'validation_failed', ['limit']);
  });

  it('adds up for any history: opening and lines are closing, and each month opens where the last one closed', async () => {
    const amount = fc.integer({ min: 1, max: 30_000 });
    const step = fc.oneof(
      fc.record({
        what: fc.constantFrom('purchase', 'refund', 'topup', 'withdrawal', 'credit', 'issue'),
        amount,
      }),
      fc.record({ what: fc.constantFrom('authorize', 'capture', 'block'), amount }),
      fc.record({ what: fc.constant('advance'), amount: fc.integer({ min: 1, max: 45 * DAY }) }),
      fc.record({ what: fc.constant('close'), amount: fc.constant(0) }),
    );
    const script = fc.array(step, { minLength: 30, maxLength: 50 });
    await fc.assert(
      fc.asyncProperty(script, async (steps) => {
        partner = await fundedPartner(stack);
        const cards = [(await createCard(partner, { amount: 20_000 })).json.id];
        const authorizations: string[] = [];
        for (const { what, amount: cents } of steps) {
          const card = cards[cents % cards.length];
          if (what === 'advance') await advance(cents);
          else if (what === 'close') await close();
          else if (what === 'credit') await post('/test/credit', { amount: cents });
          else if (what === 'topup') await post(`/cards/${card}/topups`, { amount: 1_000 + cents });
          else if (what === 'withdrawal') await post(`/cards/${card}/withdrawals`, { amount: cents });
          else if (what === 'block') await post(`/cards/${card}/block`);
          else if (what === 'issue') {
            const made = await createCard(partner, { amount: 1_000 + cents });
            if (made.status === 201) cards.push(made.json.id);
          } else if (what === 'authorize') {
            const body = { amount: cents };
            const made = await partner.call('POST', `/test/cards/${card}/authorizations`, { body });
            if (made.status === 201 && made.json.status === 'pending') authorizations.push(made.json.id);
          } else if (what === 'capture') {
            const id = authorizations.pop();
            if (id !== undefined) await post(`/test/authorizations/${id}/capture`);
          } else await post(`/test/cards/${card}/simulate-transaction`, { type: what, amount: cents });
        }
        await assertAddsUp();
        const before = await allStatements();
        await close();
        assert.deepEqual(await allStatements(), before, 'a closing changes no statement');
      }),
      { numRuns: RUNS },
    );
    assert.deepEqual(await checkBooks(stack.orm.em.fork()), []);
  });

  /** Every month from now back to that of the first change, the newest first. */
  async function allStatements() {
    const found = [];
    const first = monthAt((await all('/balance/transactions'))[0].created);
    for (let month = await thisMonth(); month >= first; ) {
      found.push(await statement(month));
      month = monthAt(Date.parse(`${month}-01T00:00:00Z`) - 1);
    }
    return found;
  }

  /** Compares each statement with the lists of what it is about. */
  async function assertAddsUp(): Promise<void> {
    const changes = await all('/balance/transactions');
    const transactions = await all('/transactions');
    let opening = (await partner.call('GET', '/balance')).json.total;
    let cardsOpening = (await all('/cards')).reduce((sum, { balance }) => sum + balance, 0);
    const sum = (cents: number[]) => cents.reduce((total, one) => total + one, 0);
    for (const { month, opening_balance, closing_balance, lines, cards } of await allStatements()) {
      const ofMonth = changes.filter(({ created }) => monthAt(created) === month);
      const used = transactions.filter(({ created }) => monthAt(created) === month);
      assert.equal(closing_balance, opening, `${month} closes where the next one opens`);
      assert.equal(cards.closing_balance, cardsOpening, `cards in ${month}`);
      for (const { type, count, amount } of lines) {
        const amounts = ofMonth.filter((change) => change.type === type).map((change) => change.amount);
        assert.deepEqual([count, amount], [amounts.length, sum(amounts)], `${type} in ${month}`);
      }
      assert.equal(
        lines.length,
        new Set(ofMonth.map(({ type }) => type)).size,
        `no line is missing in ${month}`,
      );
      const of = (...types: string[]) =>
        Math.abs(sum(ofMonth.filter(({ type }) => types.includes(type)).map(({ amount }) => amount)));
      const byCard = (type: string) =>
        sum(used.filter((one) => one.type === type).map(({ card_amount }) => card_amount));
      const { opening_balance: cardsBefore, closing_balance: _, ...flows } = cards;
      assert.deepEqual(
        flows,
        {
          loaded: of('card_issue', 'card_topup'),
          spent: byCard('purchase'),
          refunded: byCard('refund'),
          released: of('card_withdrawal', 'card_release'),
        },
        `cards in ${month}`,
      );
      opening = opening_balance;
      cardsOpening = cardsBefore;
      assert.equal(opening + sum(ofMonth.map(({ amount }) => amount)), closing_balance);
      const { loaded, spent, refunded, released } = flows;
      assert.equal(cardsBefore + loaded - spent + refunded - released, cards.closing_balance);
    }
    assert.deepEqual([opening, cardsOpening], [0, 0], 'nothing was there before the first change');
  }

  const closings = () =>
    query<{ month: string }>(
      stack.orm.em.fork(),
      'SELECT month::text FROM month_closing WHERE partner_id = $1 ORDER BY month',
      [partner.id],
    );

  it('is closed an hour after its month, once, by however many workers', async () => {
    await createCard(partner, { amount: 1_000 });
    await advance(70 * DAY);
    await createCard(partner, { amount: 1_000 });
    await advance(40 * DAY);
    const months = (await allStatements()).map(({ month }) => month);
    assert.equal(await closeMonths(stack.orm), 0, 'the clock went past these months a moment ago');
    assert.deepEqual(await closings(), []);
    await Promise.all([close(), close(), close()]);
    const closed = (await closings()).map(({ month }) => month.slice(0, 7));
    assert.equal(closed.length, 2, 'months without any transfer have no closing');
    assert.equal(closed[0], months.at(-1));
    assert.ok(!closed.includes(await thisMonth()));
  });

  it('is checked: a closing that differs from the transfers is a violation', async () => {
    await advance(40 * DAY);
    await close();
    const subject = `${partner.id} test`;
    const wrong = async () =>
      (await checkBooks(stack.orm.em.fork())).filter((violation) => violation.subject === subject);
    assert.deepEqual(await wrong(), []);
    const change = (cents: number) =>
      asOwner(
        stack,
        'UPDATE month_closing SET cards_closing_cents = cards_closing_cents + $2 WHERE partner_id = $1',
        [partner.id, cents],
      );
    await change(1);
    const [violation] = await wrong();
    assert.equal(violation?.invariant, 15);
    assert.match(
      violation?.message ?? '',
      /leaves 1000000 and 1 on cards; the transfers leave 1000000 and 0/,
    );
    await change(-1);
  });
});

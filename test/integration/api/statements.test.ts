import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { pino } from 'pino';
import { checkBooks } from '../../../commands/monitoring/check-books.ts';
import { closeDays } from '../../../commands/statements/close-days.ts';
import type { StatementResource } from '../../../resources/statement.ts';
import { expectError } from '../../support/api/answers.ts';
import { authorizedCard } from '../../support/authorizations.ts';
import { createCard } from '../../support/cards.ts';
import { assertLedgerClean, fundedPartner } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

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
  const logger = pino({ level: 'silent' });
  const close = () => closeDays({ orm: stack.orm, logger }, { graceMs: 0 });

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

  it('has deposits, fees of declines, and what a card and the balance paid or got back after the card could not', async () => {
    const card = await authorizedCard(partner, 1_000);
    const blocked = await authorizedCard(partner, 1_000);
    await post('/test/deposits', { amount: 5_000 });
    assert.equal((await card.forceCapture(1_500)).json.charged_to, 'both');
    assert.equal((await card.simulate({ type: 'decline', amount: 5 })).json.type, 'decline');
    await blocked.change('block');
    assert.equal((await blocked.forceCapture(300)).json.charged_to, 'partner_balance');
    assert.equal(
      (await blocked.simulate({ type: 'refund', amount: 120, force: true })).json.charged_to,
      'partner_balance',
    );
    await until('the deposit is in the balance', async () =>
      (await all('/balance/transactions')).some(({ type }) => type === 'deposit'),
    );
    const month = await thisMonth();
    const assertShown = async () => {
      const shown = await statement(month);
      const amounts = new Map(
        shown.lines.map(({ type, count, amount }: StatementResource['lines'][number]) => [
          type,
          [count, amount],
        ]),
      );
      assert.deepEqual(amounts.get('deposit'), [1, 5_000]);
      assert.deepEqual(amounts.get('late_debit'), [2, -800]);
      assert.deepEqual(amounts.get('late_refund'), [1, 120]);
      assert.deepEqual(amounts.get('decline_fee'), [1, -25]);
      assert.deepEqual(amounts.get('card_release'), [1, 1_000]);
      assert.deepEqual([shown.cards.loaded, shown.cards.spent, shown.cards.refunded], [2_000, 1_000, 0]);
      await assertAddsUp();
    };
    await assertShown();
    await advance(DAY);
    await close();
    await assertShown();
  });

  it('counts what was held in one month and posted in the next in the month in which it was posted', async () => {
    const { json: card } = await createCard(partner, { amount: 1_000 }, { mode: 'live' });
    const held = `partner_id = '${partner.id}' AND mode = 'live' AND phase <> 'post'`;
    // What the account did in live mode before is of the month before.
    await asOwner(stack, [
      'SET session_replication_role = replica',
      `UPDATE ledger.transfer SET created_at = date_trunc('month', created_at, 'UTC') - interval '1 second' WHERE ${held}`,
    ]);
    assert.equal(card.mode, 'live');
    const month = monthAt(Date.now());
    const read = () =>
      Promise.all([month, monthAt(Date.parse(`${month}-01`) - 1)].map((one) => statement(one, 'live')));
    const before = await read();
    const [posted, earlier] = before;
    assert.deepEqual(
      [earlier.opening_balance, earlier.closing_balance, earlier.lines.length, earlier.cards.closing_balance],
      [0, 1_000_000, 1, 0],
    );
    assert.deepEqual([posted.opening_balance, posted.cards.loaded], [1_000_000, 1_000]);
    assert.equal(
      posted.closing_balance,
      (await partner.call('GET', '/balance', { mode: 'live' })).json.total,
    );
    await close();
    assert.deepEqual(await read(), before);
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
        what: fc.constantFrom('purchase', 'refund', 'decline', 'topup', 'withdrawal', 'credit', 'issue'),
        amount,
      }),
      fc.record({ what: fc.constantFrom('authorize', 'capture', 'force-capture', 'block'), amount }),
      fc.record({ what: fc.constant('advance'), amount: fc.integer({ min: 1, max: 2 * DAY }) }),
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
          } else if (what === 'force-capture')
            await post(`/test/cards/${card}/force-capture`, { amount: cents });
          else await post(`/test/cards/${card}/simulate-transaction`, { type: what, amount: cents });
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

  const closings = async (of = partner) => {
    const rows = await asOwner<{ day: string }>(
      stack,
      `SELECT day::text FROM day_closing WHERE partner_id = $1 AND mode = 'test' ORDER BY day`,
      [of.id],
    );
    return rows.map(({ day }) => day);
  };

  it('is closed day by day, an hour after each, once, by however many workers', async () => {
    await createCard(partner, { amount: 1_000 });
    await advance(70 * DAY);
    await createCard(partner, { amount: 1_000 });
    const days = new Set((await all('/balance/transactions')).map(({ created }) => created.slice(0, 10)));
    await advance(360 * DAY);
    await advance(40 * DAY);
    await createCard(partner, { amount: 1_000 });
    await closeDays({ orm: stack.orm, logger });
    assert.deepEqual(await closings(), [], 'the clock went past these days a moment ago');
    await Promise.all([close(), close(), close()]);
    assert.deepEqual(await closings(), [...days], 'days without any transfer, and today, have no closing');
  });

  it('adds up only what was booked since the last day that is closed', async () => {
    await createCard(partner, { amount: 1_000 });
    await advance(2 * DAY);
    await createCard(partner, { amount: 1_000 });
    await close();
    const before = await allStatements();
    const add = (cents: number) =>
      asOwner(stack, [
        'SET session_replication_role = replica',
        `UPDATE ledger.transfer SET amount = amount + ${cents} WHERE partner_id = '${partner.id}' AND mode = 'test'
           AND created_at < now() + interval '1 day'`,
      ]);
    await add(1);
    assert.deepEqual(await allStatements(), before, 'transfers of closed days are not read');
    await add(-1);
  });

  /** Runs statements before each closing of an account is written. */
  const beforeClosing = (of: TestPartner, statements: string) =>
    asOwner(stack, [
      `CREATE FUNCTION stop_closing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${statements}; RETURN NEW; END $$`,
      `CREATE TRIGGER stop_closing BEFORE INSERT ON day_closing FOR EACH ROW WHEN (NEW.partner_id = '${of.id}')
         EXECUTE FUNCTION stop_closing()`,
    ]);
  const closeFreely = () => asOwner(stack, 'DROP FUNCTION stop_closing CASCADE');

  it('is closed for all other accounts if one account’s closing fails, and for that one once it does not', async () => {
    const [first, second] = [partner, await fundedPartner(stack)].sort((a, b) => (a.id < b.id ? -1 : 1));
    assert.ok(first !== undefined && second !== undefined);
    for (partner of [second, first]) await advance(DAY);
    const before = await allStatements();
    await beforeClosing(first, `RAISE EXCEPTION 'no'`);
    await close();
    assert.deepEqual([await closings(first), (await closings(second)).length], [[], 1]);
    assert.deepEqual(await allStatements(), before);
    await closeFreely();
    await close();
    assert.equal((await closings(first)).length, 1);
    assert.deepEqual(await allStatements(), before);
  });

  it('is closed by another worker if one dies meanwhile', async () => {
    await advance(DAY);
    const before = await allStatements();
    await beforeClosing(partner, 'PERFORM pg_terminate_backend(pg_backend_pid())');
    await close();
    assert.deepEqual(await closings(), []);
    assert.deepEqual(await allStatements(), before);
    await closeFreely();
    await close();
    assert.equal((await closings()).length, 1);
    assert.deepEqual(await allStatements(), before);
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
        'UPDATE day_closing SET cards_closing_cents = cards_closing_cents + $2 WHERE partner_id = $1',
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

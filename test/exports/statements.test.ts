import assert from 'node:assert/strict';
import type { Mode } from '../../domain/mode.ts';
import { checkBooks } from '../../exports/check-books.ts';
import { expectError } from '../support/api/answers.ts';
import { post } from '../support/api/post.ts';
import { authorizedCard, onAuthorization } from '../support/authorizations.ts';
import { createCard } from '../support/cards.ts';
import { fundedPartner } from '../support/money.ts';
import {
  assertAddsUp,
  assertAnyHistoryAddsUp,
  closeAllDays,
  DAY,
  monthAt,
  readAll,
  readStatement,
  readStatements,
  thisMonth,
} from '../support/monthly-statements.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';
import { advanceClock, readClock } from '../support/test-clock.ts';
import { until } from '../support/until.ts';

const HOUR_MS = 3_600_000;
/** `npm run test:load` plays a hundred. */
const HISTORIES = 2;

describe('GET /statements/{month}', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    partner = await fundedPartner(stack);
  });

  const statement = (month: string, mode: Mode = 'test') => readStatement(partner, month, mode);
  const close = () => closeAllDays(stack);

  it('says what changed the balance and the cards, by type, in the order of the types', async () => {
    const card = await authorizedCard(partner, 10_000);
    await post(partner, '/test/credit', { amount: 700 });
    await post(partner, '/test/credit', { amount: 300 });
    await post(partner, `/cards/${card.id}/topups`, { amount: 5_000 });
    await card.simulate({ type: 'purchase', amount: 4_000 });
    await card.simulate({ type: 'refund', amount: 1_500 });
    await post(partner, `/cards/${card.id}/withdrawals`, { amount: 2_000 });
    const month = await thisMonth(partner);
    const changes = await readAll(partner, '/balance/transactions');
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
    const card = await authorizedCard(partner, 10_000);
    const { id } = (await card.authorize(6_000)).json;
    const month = await thisMonth(partner);
    const before = (await statement(month)).cards;
    assert.deepEqual([before.loaded, before.spent, before.closing_balance], [10_000, 0, 10_000]);
    await onAuthorization(partner, id).capture({ amount: 2_500 });
    await card.change('block');
    assert.deepEqual((await statement(month)).cards, {
      ...before,
      spent: 2_500,
      released: 7_500,
      closing_balance: 0,
    });
  });

  it('has deposits, fees of declines, and what a card and the balance paid or got back after the card could not', async () => {
    const card = await authorizedCard(partner, 1_000);
    const blocked = await authorizedCard(partner, 1_000);
    await post(partner, '/test/deposits', { amount: 5_000 });
    assert.equal((await card.forceCapture(1_500)).json.charged_to, 'both');
    assert.equal((await card.simulate({ type: 'decline', amount: 5 })).json.type, 'decline');
    await blocked.change('block');
    assert.equal((await blocked.forceCapture(300)).json.charged_to, 'partner_balance');
    const refund = (await blocked.simulate({ type: 'refund', amount: 120, force: true })).json;
    assert.equal(refund.charged_to, 'partner_balance');
    await until('the deposit is in the balance', async () =>
      (await readAll(partner, '/balance/transactions')).some(({ type }) => type === 'deposit'),
    );
    const month = await thisMonth(partner);
    const assertShown = async () => {
      const shown = await statement(month);
      const amounts = new Map(shown.lines.map(({ type, count, amount }) => [type, [count, amount]]));
      assert.deepEqual(amounts.get('deposit'), [1, 5_000]);
      assert.deepEqual(amounts.get('late_debit'), [2, -800]);
      assert.deepEqual(amounts.get('late_refund'), [1, 120]);
      assert.deepEqual(amounts.get('decline_fee'), [1, -25]);
      assert.deepEqual(amounts.get('card_release'), [1, 1_000]);
      assert.deepEqual([shown.cards.loaded, shown.cards.spent, shown.cards.refunded], [2_000, 1_000, 0]);
      await assertAddsUp(partner);
    };
    await assertShown();
    await advanceClock(partner, DAY);
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
    const lastMonth = monthAt(Date.parse(`${month}-01`) - 1);
    const read = async () => [await statement(month, 'live'), await statement(lastMonth, 'live')] as const;
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
    for (const month of ['0001-01', '1969-12', '2020-02', await thisMonth(partner)]) {
      const { status, json } = await empty.call('GET', `/statements/${month}`);
      assert.equal(status, 200);
      assert.deepEqual(
        [json.opening_balance, json.closing_balance, json.lines, json.cards.closing_balance],
        [0, 0, [], 0],
      );
    }
  });

  it('answers 404 for what is no month, or is to come', async () => {
    const none = '2026-13 2026-00 2026-1 2026-001 0000-01 26-01 2026-10-01 9999-12 x'.split(' ');
    for (const month of none)
      expectError(await partner.call('GET', `/statements/${month}`), 'statement_not_found');
  });

  it('is there for a month as soon as it begins by the account’s clock', async () => {
    const now = new Date((await readClock(partner)).now);
    const nextMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1);
    const path = `/statements/${monthAt(nextMs)}`;
    expectError(await partner.call('GET', path), 'statement_not_found');
    await advanceClock(partner, Math.ceil((nextMs - now.getTime()) / 1_000));
    const opened = await statement(monthAt(nextMs));
    assert.deepEqual([opened.opening_balance, opened.lines], [1_000_000, []]);
    expectError(await partner.call('GET', path, { mode: 'live' }), 'statement_not_found');
  });

  it('adds up for any history: opening and lines are closing, and each month opens where the last one closed', () =>
    assertAnyHistoryAddsUp(stack, HISTORIES));

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
    await advanceClock(partner, 70 * DAY);
    await createCard(partner, { amount: 1_000 });
    const days = new Set(
      (await readAll(partner, '/balance/transactions')).map(({ created }) => created.slice(0, 10)),
    );
    await advanceClock(partner, 360 * DAY);
    await advanceClock(partner, 40 * DAY);
    await createCard(partner, { amount: 1_000 });
    await closeAllDays(stack, HOUR_MS);
    assert.deepEqual(await closings(), [], 'the clock went past these days a moment ago');
    await Promise.all([close(), close(), close()]);
    assert.deepEqual(await closings(), [...days], 'days without any transfer, and today, have no closing');
  });

  it('adds up only what was booked since the last day that is closed', async () => {
    await createCard(partner, { amount: 1_000 });
    await advanceClock(partner, 2 * DAY);
    await createCard(partner, { amount: 1_000 });
    await close();
    const before = await readStatements(partner);
    const add = (cents: number) =>
      asOwner(stack, [
        'SET session_replication_role = replica',
        `UPDATE ledger.transfer SET amount = amount + ${cents} WHERE partner_id = '${partner.id}' AND mode = 'test'
           AND created_at < now() + interval '1 day'`,
      ]);
    await add(1);
    assert.deepEqual(await readStatements(partner), before, 'transfers of closed days are not read');
    await add(-1);
  });

  /** Runs statements before each closing of an account is written. */
  const beforeClosing = (of: TestPartner, statements: string) =>
    asOwner(stack, [
      `CREATE FUNCTION stop_closing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${statements}; RETURN NEW; END $$`,
      `CREATE TRIGGER stop_closing BEFORE INSERT ON day_closing FOR EACH ROW WHEN (NEW.partner_id = '${of.id}')
         EXECUTE FUNCTION stop_closing()`,
    ]);
  const closeFreely = () => asOwner(stack, 'DROP FUNCTION IF EXISTS stop_closing CASCADE');
  after(closeFreely);

  for (const [title, statements, othersClosed] of [
    ['for all other accounts if one account’s closing fails, and for that one', `RAISE EXCEPTION 'no'`, 1],
    ['by the next attempt if a connection ends', 'PERFORM pg_terminate_backend(pg_backend_pid())', null],
  ] as const) {
    it(`is closed ${title}`, async () => {
      const [first, second] = [partner, await fundedPartner(stack)].sort((a, b) => (a.id < b.id ? -1 : 1));
      assert.ok(first !== undefined && second !== undefined);
      for (const one of [second, first]) await advanceClock(one, DAY);
      const before = await readStatements(first);
      await beforeClosing(first, statements);
      await close();
      assert.deepEqual(await closings(first), []);
      if (othersClosed !== null) assert.equal((await closings(second)).length, othersClosed);
      assert.deepEqual(await readStatements(first), before);
      await closeFreely();
      await close();
      for (const one of [first, second]) assert.equal((await closings(one)).length, 1);
      assert.deepEqual(await readStatements(first), before);
    });
  }

  it('is checked: a closing that differs from the transfers is a violation', async () => {
    await advanceClock(partner, 40 * DAY);
    await close();
    const subject = `${partner.id} test`;
    const wrong = async () =>
      (await checkBooks(stack.orm.em.fork())).filter((violation) => violation.subject === subject);
    assert.deepEqual(await wrong(), []);
    const changed =
      'UPDATE day_closing SET cards_closing_cents = cards_closing_cents + $2 WHERE partner_id = $1';
    await asOwner(stack, changed, [partner.id, 1]);
    const [{ invariant, message } = assert.fail('nothing was found')] = await wrong();
    assert.equal(invariant, 15);
    assert.match(message, /leaves 1000000 and 1 on cards; the transfers leave 1000000 and 0/);
    await asOwner(stack, changed, [partner.id, -1]);
  });
});

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { pino } from 'pino';
import type { Mode } from '../../domain/mode.ts';
import { closeDays } from '../../exports/close-days.ts';
import type { StatementResource } from '../../exports/statement-resource.ts';
import { createCard } from './cards.ts';
import { assertLedgerClean, fundedPartner } from './money.ts';
import type { TestPartner, TestStack } from './stack.ts';
import { advanceClock, readClock, untilReady } from './test-clock.ts';

export const DAY = 86_400;

export const monthAt = (time: string | number): string => new Date(time).toISOString().slice(0, 7);

export const thisMonth = async (partner: TestPartner): Promise<string> =>
  monthAt((await readClock(partner)).now);

export async function readStatement(
  partner: TestPartner,
  month: string,
  mode: Mode = 'test',
): Promise<StatementResource> {
  const { status, json, text } = await partner.call('GET', `/statements/${month}`, { mode });
  assert.equal(status, 200, text);
  return json;
}

/** Closes every day that is over, of all accounts. */
export const closeAllDays = ({ orm }: TestStack, graceMs = 0): Promise<number> =>
  closeDays({ orm, logger: pino({ level: 'silent' }) }, { graceMs });

export async function readAll(partner: TestPartner, path: string) {
  // biome-ignore lint/suspicious/noExplicitAny: items of any list.
  const items: any[] = [];
  for (let after = ''; ; after = `&starting_after=${items.at(-1).id}`) {
    const { json } = await partner.call('GET', `${path}?limit=100${after}`);
    items.push(...json.data);
    if (!json.has_more) return items.reverse();
  }
}

/** Every month from now back to that of the first change, the newest first. */
export async function readStatements(partner: TestPartner): Promise<StatementResource[]> {
  const found = [];
  const first = monthAt((await readAll(partner, '/balance/transactions'))[0].created);
  for (let month = await thisMonth(partner); month >= first; ) {
    found.push(await readStatement(partner, month));
    month = monthAt(Date.parse(`${month}-01T00:00:00Z`) - 1);
  }
  return found;
}

const sum = (cents: number[]) => cents.reduce((total, one) => total + one, 0);

/** Compares each statement with the lists of what it is about. */
export async function assertAddsUp(partner: TestPartner): Promise<void> {
  const changes = await readAll(partner, '/balance/transactions');
  const transactions = await readAll(partner, '/transactions');
  let opening = (await partner.call('GET', '/balance')).json.total;
  let cardsOpening = sum((await readAll(partner, '/cards')).map(({ balance }) => balance));
  for (const { month, opening_balance, closing_balance, lines, cards } of await readStatements(partner)) {
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
    const moved = (...types: string[]) =>
      Math.abs(sum(ofMonth.filter(({ type }) => types.includes(type)).map(({ amount }) => amount)));
    const byCard = (type: string) =>
      sum(used.filter((one) => one.type === type).map(({ card_amount }) => card_amount));
    const { opening_balance: cardsBefore, closing_balance: _, ...flows } = cards;
    assert.deepEqual(
      flows,
      {
        loaded: moved('card_issue', 'card_topup'),
        spent: byCard('purchase'),
        refunded: byCard('refund'),
        released: moved('card_withdrawal', 'card_release'),
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

const CHANGES = ['purchase', 'refund', 'decline', 'topup', 'withdrawal', 'credit', 'issue'] as const;
const CARD_CHANGES = ['authorize', 'capture', 'force-capture', 'block'] as const;
const cents = fc.integer({ min: 1, max: 30_000 });
const step = fc.oneof(
  fc.record({ what: fc.constantFrom(...CHANGES), amount: cents }),
  fc.record({ what: fc.constantFrom(...CARD_CHANGES), amount: cents }),
  fc.record({ what: fc.constant('advance' as const), amount: fc.integer({ min: 1, max: 2 * DAY }) }),
  fc.record({ what: fc.constant('advance' as const), amount: fc.integer({ min: 1, max: 45 * DAY }) }),
  fc.record({ what: fc.constant('close' as const), amount: fc.constant(0) }),
);

/** Asserts that statements add up after any history of an account, and that closing its days changes none of them. */
export async function assertAnyHistoryAddsUp(stack: TestStack, numRuns: number): Promise<void> {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 30, maxLength: 50 }), async (steps) => {
      const partner = await fundedPartner(stack);
      const cards: string[] = [(await createCard(partner, { amount: 20_000 })).json.id];
      const authorizations: string[] = [];
      const post = async (path: string, body?: object) => {
        const answer = await partner.call('POST', path, { body, idempotencyKey: randomUUID() });
        // Money that is not there, a blocked card, a limit.
        assert.ok(answer.status < 300 || [402, 409, 422].includes(answer.status), answer.text);
        return answer;
      };
      for (const { what, amount } of steps) {
        const card = cards[amount % cards.length];
        if (what === 'advance') await advanceClock(partner, amount);
        else if (what === 'close') await closeAllDays(stack);
        else if (what === 'credit') await post('/test/credit', { amount });
        else if (what === 'topup') await post(`/cards/${card}/topups`, { amount: 1_000 + amount });
        else if (what === 'withdrawal') await post(`/cards/${card}/withdrawals`, { amount });
        else if (what === 'block') await post(`/cards/${card}/block`);
        else if (what === 'issue') {
          const made = await post('/cards', { amount: 1_000 + amount, external_ref: randomUUID() });
          if (made.status === 201) cards.push(made.json.id);
        } else if (what === 'authorize') {
          const made = await post(`/test/cards/${card}/authorizations`, { amount });
          if (made.json.status === 'pending') authorizations.push(made.json.id);
        } else if (what === 'capture') {
          const id = authorizations.pop();
          if (id !== undefined) await post(`/test/authorizations/${id}/capture`);
        } else if (what === 'force-capture') await post(`/test/cards/${card}/force-capture`, { amount });
        else await post(`/test/cards/${card}/simulate-transaction`, { type: what, amount });
      }
      // What the clock made due is booked before statements are compared.
      await untilReady(partner);
      await assertAddsUp(partner);
      const before = await readStatements(partner);
      await closeAllDays(stack);
      assert.deepEqual(await readStatements(partner), before, 'a closing changes no statement');
      await assertLedgerClean(stack, partner);
    }),
    { numRuns },
  );
}

import assert from 'node:assert/strict';
import { checkLedger } from '../../../ledger/check-ledger.ts';
import { expectError } from '../../support/api/answers.ts';
import { balanceOf } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { TestStack } from '../../support/stack.ts';
import { CARD_CENTS, cardholder, listTopUps, readCard, topUp, topUpEvents } from '../../support/top-ups.ts';

/** A top-up of 1,000 cents with its fee, by the platform's plan. */
const DEBITED = 1_050;

describe('POST /cards/{cardId}/topups, called many times at once,', () => {
  let stack: TestStack;
  before(async () => {
    stack = await sharedStack();
  });

  for (const mode of ['test', 'live'] as const) {
    it(`makes exactly the 37 of 100 top-ups that the balance covers, in ${mode} mode`, async () => {
      const holder = await cardholder(stack, mode, 37 * DEBITED + DEBITED - 1);
      const answers = await Promise.all(Array.from({ length: 100 }, () => topUp(holder, 1_000)));
      const made = answers.filter((answer) => answer.status === 201).map((answer) => answer.json);
      assert.equal(made.length, 37);
      for (const answer of answers) if (answer.status !== 201) expectError(answer, 'insufficient_funds');
      assert.deepEqual(await balanceOf(holder.partner, mode), [DEBITED - 1, 0, DEBITED - 1]);
      assert.equal((await readCard(holder)).balance, CARD_CENTS + 37_000);

      const byId = (some: { id: string }[]) => some.sort((a, b) => (a.id < b.id ? -1 : 1));
      assert.deepEqual(byId((await listTopUps(holder, '?limit=100')).data), byId(made));
      // Each left another balance: they came one after the other, in some order.
      const balances = made.map((one: { card_balance: number }) => one.card_balance).sort((a, b) => a - b);
      assert.deepEqual(
        balances,
        Array.from({ length: 37 }, (_, index) => CARD_CENTS + (index + 1) * 1_000),
      );
      const events = (await topUpEvents(stack, holder)).map((event) => event.data.topup);
      assert.deepEqual(byId(events), byId(made));
      const [usage] = await asOwner(
        stack,
        'SELECT open_cards, loaded_cents::int FROM account_usage WHERE partner_id = $1 AND mode = $2',
        [holder.partner.id, mode],
      );
      assert.deepEqual(usage, { open_cards: 1, loaded_cents: CARD_CENTS + 37_000 });
      assert.deepEqual(await checkLedger(stack.orm.em.fork()), []);
    });
  }

  it('comes entirely before or after each simultaneous status change of the card', async () => {
    const holder = await cardholder(stack, 'test', 20 * DEBITED);
    const { partner, cardId } = holder;
    const change = (verb: string) => partner.call('POST', `/cards/${cardId}/${verb}`);
    const [answers] = await Promise.all([
      Promise.all(Array.from({ length: 20 }, () => topUp(holder, 1_000))),
      change('freeze').then(() => change('unfreeze')),
    ]);
    const made = answers.filter((answer) => answer.status === 201).length;
    for (const answer of answers) if (answer.status !== 201) expectError(answer, 'invalid_state');
    assert.equal((await readCard(holder)).balance, CARD_CENTS + made * 1_000);
    const left = (20 - made) * DEBITED;
    assert.deepEqual(await balanceOf(partner), [left, 0, left]);
  });
});

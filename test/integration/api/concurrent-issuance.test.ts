import assert from 'node:assert/strict';
import { checkLedger } from '../../../ledger/check-ledger.ts';
import { expectError } from '../../support/api/answers.ts';
import { createCard } from '../../support/cards.ts';
import { balanceOf, fundedPartner } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { TestStack } from '../../support/stack.ts';

/** A card of 1,000 cents with its fees, by the platform's plan. */
const DEBITED = 1_150;

describe('POST /cards, called many times at once,', () => {
  let stack: TestStack;
  before(async () => {
    stack = await sharedStack();
  });

  for (const mode of ['test', 'live'] as const) {
    it(`issues exactly the 37 of 100 cards that the balance covers, in ${mode} mode`, async () => {
      const partner = await fundedPartner(stack, 37 * DEBITED + DEBITED - 1);
      const answers = await Promise.all(
        Array.from({ length: 100 }, () => createCard(partner, { amount: 1_000 }, { mode })),
      );
      const issued = answers.filter((answer) => answer.status === 201);
      const refused = answers.filter((answer) => answer.status !== 201);
      assert.equal(issued.length, 37);
      assert.equal(refused.length, 63);
      for (const answer of refused) expectError(answer, 'insufficient_funds');
      assert.deepEqual(await balanceOf(partner, mode), [DEBITED - 1, 0, DEBITED - 1]);

      const { json } = await partner.call('GET', '/cards?limit=100', { mode });
      const ids = (cards: { id: string }[]) => cards.map((card) => card.id).sort();
      assert.deepEqual(ids(json.data), ids(issued.map((answer) => answer.json)));
      assert.ok(
        json.data.every(
          (card: { status: string; balance: number }) => card.status === 'active' && card.balance === 1_000,
        ),
      );
      const events = await asOwner<{ card_id: string }>(
        stack,
        `SELECT card_id FROM event WHERE partner_id = $1 AND mode = $2 AND type = 'card.issued'`,
        [partner.id, mode],
      );
      assert.deepEqual(events.map((event) => event.card_id).sort(), ids(json.data));
      const [usage] = await asOwner(
        stack,
        'SELECT open_cards, loaded_cents::int FROM account_usage WHERE partner_id = $1 AND mode = $2',
        [partner.id, mode],
      );
      assert.deepEqual(usage, { open_cards: 37, loaded_cents: 37_000 });
      assert.deepEqual(await checkLedger(stack.orm.em.fork()), []);
    });
  }

  it('gives an external_ref to one of 20 cards', async () => {
    const partner = await fundedPartner(stack, 100_000);
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => createCard(partner, { amount: 1_000, external_ref: 'r' })),
    );
    assert.equal(answers.filter((answer) => answer.status === 201).length, 1);
    for (const answer of answers) if (answer.status !== 201) expectError(answer, 'external_ref_taken');
    assert.deepEqual(await balanceOf(partner), [100_000 - DEBITED, 0, 100_000 - DEBITED]);
  });
});

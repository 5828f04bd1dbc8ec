import assert from 'node:assert/strict';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { expectError } from '../support/api/answers.ts';
import { changeStatus } from '../support/card-status.ts';
import { createCard } from '../support/cards.ts';
import { balanceOf, fundedPartner, priceOf } from '../support/money.ts';
import {
  ask,
  cardMoney,
  eventsAbout,
  ISSUANCE,
  listed,
  type OperationKind,
  operating,
  TOP_UP,
  WITHDRAWAL,
} from '../support/operation-kinds.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestStack } from '../support/stack.ts';

const AMOUNT = 1_000;
const REQUESTS = 40;
/** How many of them what there is covers, and how much there is of the balance: a cent less than one more costs. */
const ROWS: readonly [OperationKind, covered: number, fundsCents: number, usage: object][] = [
  [ISSUANCE, 13, 14 * priceOf(AMOUNT) - 1, { open_cards: 13, loaded_cents: 13_000 }],
  [TOP_UP, 13, 14 * priceOf(AMOUNT, 'card_topup') - 1, { open_cards: 1, loaded_cents: 14_000 }],
  [WITHDRAWAL, 10, 500, { open_cards: 1, loaded_cents: 10_000 }],
];

describe(`${REQUESTS} requests at once`, () => {
  let stack: TestStack;
  before(async () => {
    stack = await sharedStack();
  });
  after(async () => {
    assert.deepEqual(await checkLedger(stack.orm.em.fork()), []);
  });

  for (const mode of ['test', 'live'] as const) {
    for (const [kind, covered, fundsCents, expectedUsage] of ROWS) {
      it(`make exactly the ${covered} ${kind.collection} that the money covers, in ${mode} mode`, async () => {
        const on = await operating(stack, kind, mode, fundsCents);
        const answers = await Promise.all(
          Array.from({ length: REQUESTS }, (_, number) =>
            ask(on, AMOUNT, {
              ...(kind === ISSUANCE && { body: { amount: AMOUNT, external_ref: `${number}` } }),
            }),
          ),
        );
        const made = answers.filter(({ status }) => status === 201).map(({ json }) => json);
        assert.equal(made.length, covered);
        for (const answer of answers) if (answer.status !== 201) expectError(answer, kind.short);

        const { balanceCents, cardCents } = kind.change(AMOUNT);
        const left = fundsCents + covered * balanceCents;
        assert.deepEqual(await balanceOf(on.partner, mode), [left, 0, left]);
        const byId = (some: { id: string }[]) => some.toSorted((a, b) => (a.id < b.id ? -1 : 1));
        assert.deepEqual(byId(await listed(on)), byId(made));
        assert.deepEqual(byId((await eventsAbout(on)).map(({ data }) => data[kind.object])), byId(made));
        if (kind !== ISSUANCE) {
          const onCard = kind.cardCents + covered * cardCents;
          assert.deepEqual(await cardMoney(on), [onCard, onCard]);
          // Each left another balance: they came one after the other, in some order.
          const balances: number[] = made.map(({ card_balance }) => card_balance);
          assert.deepEqual(
            balances.toSorted((a, b) => (a - b) * Math.sign(cardCents)),
            Array.from({ length: covered }, (_, index) => kind.cardCents + (index + 1) * cardCents),
          );
        }
        const [usage] = await asOwner(
          stack,
          'SELECT open_cards, loaded_cents::int FROM account_usage WHERE partner_id = $1 AND mode = $2',
          [on.partner.id, mode],
        );
        assert.deepEqual(usage, expectedUsage);
      });
    }
  }

  it('give an external_ref to one card', async () => {
    const partner = await fundedPartner(stack, 100_000);
    const answers = await Promise.all(
      Array.from({ length: REQUESTS }, () => createCard(partner, { amount: AMOUNT, external_ref: 'r' })),
    );
    assert.equal(answers.filter(({ status }) => status === 201).length, 1);
    for (const answer of answers) if (answer.status !== 201) expectError(answer, 'external_ref_taken');
    const left = 100_000 - priceOf(AMOUNT);
    assert.deepEqual(await balanceOf(partner), [left, 0, left]);
  });

  it('come entirely before or after each status change of the card', async () => {
    const on = await operating(stack, TOP_UP, 'test');
    const [answers] = await Promise.all([
      Promise.all(Array.from({ length: REQUESTS }, () => ask(on, AMOUNT))),
      changeStatus(on.partner, on.cardId, 'freeze').then(() =>
        changeStatus(on.partner, on.cardId, 'unfreeze'),
      ),
    ]);
    const made = answers.filter(({ status }) => status === 201).length;
    for (const answer of answers) if (answer.status !== 201) expectError(answer, 'invalid_state');
    const onCard = TOP_UP.cardCents + made * AMOUNT;
    assert.deepEqual(await cardMoney(on), [onCard, onCard]);
    const left = on.fundsCents - made * priceOf(AMOUNT, 'card_topup');
    assert.deepEqual(await balanceOf(on.partner), [left, 0, left]);
  });
});

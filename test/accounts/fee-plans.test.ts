import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { FeePlan } from '../../domain/fees.ts';
import { expectError } from '../support/api/answers.ts';
import { FUNDINGS, MAX, negotiatePlan } from '../support/api/fees.ts';
import { createCard } from '../support/cards.ts';
import { balanceOf, fundedPartner, transferCodes } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';

describe('a fee plan', () => {
  let stack: TestStack;
  before(async () => {
    stack = await sharedStack();
  });

  const partnerWith = async (plan: Partial<FeePlan>, balanceCents = MAX): Promise<TestPartner> => {
    const partner = await fundedPartner(stack, balanceCents);
    await negotiatePlan(stack, partner, plan);
    return partner;
  };
  const quoteOf = (partner: TestPartner, amount: number, type = 'card_issue') =>
    partner.call('POST', '/quotes', { body: { type, amount } });

  it('gives quotes that equal the debit to the cent, whatever the plan and the amount', async () => {
    await fc.assert(
      fc.asyncProperty(FUNDINGS, async ({ plan, amount, mode }) => {
        const partner = await partnerWith(plan);
        const quote = await quoteOf(partner, amount);
        const created = await createCard(partner, { amount }, { mode });
        const [available, held, total] = await balanceOf(partner, mode);
        if (quote.status === 400) {
          expectError(quote, 'validation_failed', ['amount']);
          expectError(created, 'validation_failed', ['amount']);
          assert.deepEqual([available, held, total], [MAX, 0, MAX]);
          return;
        }
        const { fees, total_debited, card_amount } = quote.json;
        const sum = fees.reduce(
          (soFar: bigint, fee: { amount: number }) => soFar + BigInt(fee.amount),
          BigInt(amount),
        );
        assert.deepEqual([card_amount, BigInt(total_debited)], [amount, sum]);
        assert.ok(fees.every((fee: { amount: number }) => fee.amount > 0));
        // The amount's last digits decide the outcome of a live card; what it costs or holds is the quote in any case.
        if (created.status === 402) expectError(created, 'provider_declined');
        else assert.ok([201, 202].includes(created.status), created.text);
        assert.equal(MAX - (available as number), created.status === 402 ? 0 : total_debited);
      }),
      { numRuns: 30 },
    );
  });

  it('leaves fees of zero out of quotes and the ledger', async () => {
    const partner = await partnerWith({}, 1_000);
    const quote = await quoteOf(partner, 1_000);
    assert.deepEqual([quote.json.fees, quote.json.total_debited], [[], 1_000]);
    const { json } = await createCard(partner, { amount: 1_000 });
    assert.equal(json.balance, 1_000);
    assert.deepEqual(await balanceOf(partner), [0, 0, 0]);
    assert.deepEqual(await transferCodes(stack, `issue/${json.id}`), ['issue_load']);
  });

  it("replaces the platform's plan as a whole, and rounds half up", async () => {
    const partner = await partnerWith({ cardActivationCents: 7, cardFundingBasisPoints: 125 });
    for (const [amount, funding] of [
      [40, 1], // 0.5
      [39, 0], // 0.4875
      [119, 1], // 1.4875
      [120, 2], // 1.5
    ] as const) {
      const { json } = await quoteOf(partner, amount);
      assert.deepEqual(json.fees, [
        { type: 'card_activation', amount: 7 },
        ...(funding === 0 ? [] : [{ type: 'card_funding', amount: funding }]),
      ]);
      const topUp = await quoteOf(partner, amount, 'card_topup');
      assert.equal(topUp.json.total_debited, amount + funding);
    }
  });

  it('counts towards what the balance has to cover, to the cent', async () => {
    const plan = { cardActivationCents: 3, cardFundingMinCents: 4 };
    const poor = await partnerWith(plan, 1_006);
    expectError(await createCard(poor, { amount: 1_000 }), 'insufficient_funds');
    const covered = await partnerWith(plan, 1_007);
    assert.equal((await createCard(covered, { amount: 1_000 })).status, 201);
    assert.deepEqual(await balanceOf(covered), [0, 0, 0]);
  });

  it('leads to 400 for a card or a quote if amount and fees exceed the largest integer', async () => {
    const partner = await partnerWith({ cardActivationCents: 1 });
    expectError(await quoteOf(partner, MAX), 'validation_failed', ['amount']);
    expectError(await createCard(partner, { amount: MAX }), 'validation_failed', ['amount']);
    assert.equal((await createCard(partner, { amount: MAX - 1 })).status, 201);
    assert.deepEqual(await balanceOf(partner), [0, 0, 0]);
  });
});

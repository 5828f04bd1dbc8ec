import assert from 'node:assert/strict';
import fc from 'fast-check';
import { adjustBalance } from '../../accounts/adjust-balance.ts';
import type { FeePlan } from '../../domain/fees.ts';
import { expectError, expectReplay } from '../support/api/answers.ts';
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
      { numRuns: 15 },
    );
  });

  it('leaves fees of zero out of quotes and the ledger', async () => {
    const partner = await partnerWith({}, 1_000);
    const quote = await quoteOf(partner, 1_000);
    assert.deepEqual([quote.json.fees, quote.json.total_debited], [[], 1_000]);
    const { json } = await createCard(partner, { amount: 1_000 });
    assert.deepEqual(await transferCodes(stack, `issue/${json.id}`), ['issue_load']);
  });

  for (const mode of ['test', 'live'] as const) {
    it(`lets no sum pass the largest integer in ${mode} mode: a block gets 409 until it fits, and a top-up 400`, async () => {
      const partner = await partnerWith({}, 10_000);
      const make = async () => (await createCard(partner, { amount: 1_000 }, { mode })).json;
      const cards = [await make(), await make()];
      const adjust = (amountCents: number) =>
        adjustBalance(stack.operator, {
          ...{ partnerId: partner.id, mode, amountCents, reason: 'a test', key: null },
        });
      await adjust(MAX - 8_000);
      const block = (options = {}) =>
        partner.call('POST', `/cards/${cards[0].id}/block`, { mode, ...options });
      const refused = await block({ idempotencyKey: 'block' });
      expectError(refused, 'invalid_state');
      expectError(await block(), 'invalid_state');
      const topUp = { mode, body: { amount: MAX - 999 }, idempotencyKey: 'top-up' };
      const tooMuch = await partner.call('POST', `/cards/${cards[1].id}/topups`, topUp);
      expectError(tooMuch, 'validation_failed', ['amount']);
      for (const card of cards)
        assert.deepEqual((await partner.call('GET', `/cards/${card.id}`, { mode })).json, card);
      assert.deepEqual(await balanceOf(partner, mode), [MAX, 0, MAX]);

      await adjust(-1_000);
      expectReplay(await block({ idempotencyKey: 'block' }), refused);
      const blocked = await block();
      assert.deepEqual([blocked.status, blocked.json.balance], [200, 0]);
      assert.deepEqual(await balanceOf(partner, mode), [MAX, 0, MAX]);
    });
  }
});

import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { FeePlan } from '../../domain/fees.ts';
import type { Mode } from '../../domain/mode.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { expectError } from '../support/api/answers.ts';
import { FUNDINGS, MAX, negotiatePlan } from '../support/api/fees.ts';
import { createCard } from '../support/cards.ts';
import { balanceOf, fundedPartner, transferCodes } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';
import { CARD_CENTS, cardholder, settledTopUp, transfer } from '../support/transfers.ts';

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
  const holderWith = async (plan: Partial<FeePlan>, leftCents: number, mode: Mode = 'test') => {
    const holder = await cardholder(stack, mode, leftCents);
    await negotiatePlan(stack, holder.partner, plan);
    return holder;
  };

  for (const [type, noFees] of [
    ['card_issue', []],
    ['card_topup', ['card_activation']],
  ] as [string, string[]][]) {
    it(`gives quotes of a ${type} that equal the debit to the cent, whatever the plan and the amount`, async () => {
      await fc.assert(
        fc.asyncProperty(FUNDINGS, async ({ plan, amount, mode }) => {
          const holder =
            type === 'card_topup'
              ? await holderWith(plan, MAX, mode)
              : { partner: await partnerWith(plan), mode, cardId: '' };
          const { partner } = holder;
          const quote = await partner.call('POST', '/quotes', { body: { type, amount } });
          const made = await (type === 'card_topup'
            ? transfer('topup', holder, amount)
            : createCard(partner, { amount }, { mode }));
          const [available, held, total] = await balanceOf(partner, mode);
          const isTooMuch = type === 'card_topup' && amount > MAX - CARD_CENTS;
          if (quote.status === 400 || isTooMuch) {
            if (quote.status === 400) expectError(quote, 'validation_failed', ['amount']);
            expectError(made, 'validation_failed', ['amount']);
            assert.deepEqual([available, held, total], [MAX, 0, MAX]);
            return;
          }
          const { fees, total_debited, card_amount } = quote.json;
          const sum = fees.reduce(
            (soFar: bigint, fee: { amount: number }) => soFar + BigInt(fee.amount),
            BigInt(amount),
          );
          assert.deepEqual([card_amount, BigInt(total_debited)], [amount, sum]);
          assert.ok(
            fees.every(
              (fee: { type: string; amount: number }) => fee.amount > 0 && !noFees.includes(fee.type),
            ),
          );
          // The amount's last digits decide the outcome of a live card; what it costs or holds is the quote in any case.
          if (made.status === 402) expectError(made, 'provider_declined');
          else assert.ok([201, 202].includes(made.status), made.text);
          assert.equal(MAX - (available as number), made.status === 402 ? 0 : total_debited);
        }),
        { numRuns: 15 },
      );
      assert.deepEqual(await checkLedger(stack.orm.em.fork()), []);
    });
  }

  it('leaves fees of zero out of quotes, responses and the ledger', async () => {
    const partner = await partnerWith({}, 1_000);
    const quote = await partner.call('POST', '/quotes', { body: { type: 'card_issue', amount: 1_000 } });
    assert.deepEqual([quote.json.fees, quote.json.total_debited], [[], 1_000]);
    const { json } = await createCard(partner, { amount: 1_000 });
    assert.deepEqual(await transferCodes(stack, `issue/${json.id}`), ['issue_load']);
    const holder = await holderWith({ cardActivationCents: 700 }, 1_000);
    const { json: topUp } = await transfer('topup', holder, 1_000);
    assert.deepEqual([topUp.fees, topUp.total_debited], [[], 1_000]);
    assert.deepEqual(await balanceOf(holder.partner), [0, 0, 0]);
    assert.deepEqual(await transferCodes(stack, `topup/${topUp.id}`), ['topup']);
  });

  it('debits what it said when the top-up began, even if it has changed since', async () => {
    const holder = await holderWith({ cardFundingMinCents: 7 }, 10_000, 'live');
    const pending = await transfer('topup', holder, 1_041);
    assert.equal(pending.status, 202, pending.text);
    await negotiatePlan(stack, holder.partner, { cardFundingMinCents: 9 });
    await settledTopUp(holder, pending.json.id);
    assert.deepEqual(await balanceOf(holder.partner, 'live'), [10_000 - 1_048, 0, 10_000 - 1_048]);
  });

  it('leads to 400 if the card could not hold the amount together with pending top-ups', async () => {
    const holder = await holderWith({}, MAX, 'live');
    const room = 44;
    const pending = await transfer('topup', holder, MAX - CARD_CENTS - room);
    assert.deepEqual([pending.status, pending.json.amount % 100], [202, 47], pending.text);
    expectError(await transfer('topup', holder, room + 1), 'validation_failed', ['amount']);
    assert.equal((await transfer('topup', holder, room)).status, 201);
  });
});

import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { FeePlan } from '../../../domain/fees.ts';
import { checkLedger } from '../../../ledger/check-ledger.ts';
import { expectError } from '../../support/api/answers.ts';
import { FUNDINGS, MAX, negotiatePlan } from '../../support/api/fees.ts';
import { balanceOf, transferCodes } from '../../support/money.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { TestStack } from '../../support/stack.ts';
import {
  CARD_CENTS,
  type Cardholder,
  cardholder,
  readCard,
  settledTopUp,
  transfer,
} from '../../support/transfers.ts';

describe('the cost of a top-up', () => {
  let stack: TestStack;
  before(async () => {
    stack = await sharedStack();
  });

  const negotiate = ({ partner }: Cardholder, plan: Partial<FeePlan>) => negotiatePlan(stack, partner, plan);
  const holderWith = async (plan: Partial<FeePlan>, leftCents: number) => {
    const holder = await cardholder(stack, 'test', leftCents);
    await negotiate(holder, plan);
    return holder;
  };
  const quoteOf = ({ partner }: Cardholder, amount: number) =>
    partner.call('POST', '/quotes', { body: { type: 'card_topup', amount } });

  it('equals its quote to the cent, whatever the plan and the amount', async () => {
    await fc.assert(
      fc.asyncProperty(FUNDINGS, async ({ plan, amount, mode }) => {
        const holder = await cardholder(stack, mode, MAX);
        await negotiate(holder, plan);
        const quote = await quoteOf(holder, amount);
        const made = await transfer('topup', holder, amount);
        const [available, held, total] = await balanceOf(holder.partner, mode);
        if (quote.status === 400 || amount > MAX - CARD_CENTS) {
          if (quote.status === 400) expectError(quote, 'validation_failed', ['amount']);
          expectError(made, 'validation_failed', ['amount']);
          assert.deepEqual([available, held, total], [MAX, 0, MAX]);
          return;
        }
        const { fees, total_debited, card_amount } = quote.json;
        assert.equal(card_amount, amount);
        assert.ok(fees.every(({ type }: { type: string }) => type === 'card_funding'));
        if (made.status === 402) {
          expectError(made, 'provider_declined');
          assert.deepEqual([available, held, total], [MAX, 0, MAX]);
          return;
        }
        assert.ok([201, 202].includes(made.status), made.text);
        assert.deepEqual([made.json.fees, made.json.total_debited], [fees, total_debited]);
        assert.equal(MAX - (available as number), total_debited);
        const loaded = made.status === 201 || held === 0;
        assert.equal((await readCard(holder)).balance, CARD_CENTS + (loaded ? amount : 0));
      }),
      { numRuns: 15 },
    );
    assert.deepEqual(await checkLedger(stack.orm.em.fork()), []);
  });

  it('includes no activation fee, and leaves fees of zero out of the response and the ledger', async () => {
    const holder = await holderWith({ cardActivationCents: 700 }, 1_000);
    const { json } = await transfer('topup', holder, 1_000);
    assert.deepEqual([json.fees, json.total_debited], [[], 1_000]);
    assert.deepEqual(await balanceOf(holder.partner), [0, 0, 0]);
    assert.deepEqual(await transferCodes(stack, `topup/${json.id}`), ['topup']);
  });

  it("follows the account's own plan, rounded half up", async () => {
    const holder = await holderWith({ cardFundingBasisPoints: 125 }, 1_000_000);
    for (const [amount, fee] of [
      [39, 0], // 0.4875
      [40, 1], // 0.5
      [119, 1], // 1.4875
      [120, 2], // 1.5
    ] as const) {
      assert.equal((await transfer('topup', holder, amount)).json.total_debited, amount + fee);
    }
  });

  it('is debited as it was when the top-up began, even if the plan has changed since', async () => {
    const holder = await cardholder(stack, 'live', 10_000);
    await negotiate(holder, { cardFundingMinCents: 7 });
    const pending = await transfer('topup', holder, 1_041);
    assert.equal(pending.status, 202, pending.text);
    await negotiate(holder, { cardFundingMinCents: 9 });
    await settledTopUp(holder, pending.json.id);
    assert.deepEqual(await balanceOf(holder.partner, 'live'), [10_000 - 1_048, 0, 10_000 - 1_048]);
  });

  it('leads to 400 if the card could not hold the amount together with pending top-ups', async () => {
    const holder = await cardholder(stack, 'live', MAX);
    await negotiate(holder, {});
    const room = 44;
    const pending = await transfer('topup', holder, MAX - CARD_CENTS - room);
    assert.deepEqual([pending.status, pending.json.amount % 100], [202, 47], pending.text);
    expectError(await transfer('topup', holder, room + 1), 'validation_failed', ['amount']);
    assert.equal((await transfer('topup', holder, room)).status, 201);
  });
});

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { ApiError } from '../../../domain/api-error.ts';
import type { CardStatus } from '../../../domain/card-status.ts';
import { DEFAULT_FEE_PLAN, type FeePlan } from '../../../domain/fees.ts';
import { decideTransaction, type TransactionRequest, transactionFees } from '../../../domain/transaction.ts';

const BALANCE = 1_000;
const FEES = {
  purchase: [{ type: 'transaction', amount: 15 }],
  decline: [{ type: 'decline', amount: 25 }],
  refund: [],
};

const decide = (status: CardStatus, request: Partial<TransactionRequest>, balanceCents = BALANCE) =>
  decideTransaction(
    { type: 'purchase', amountCents: BALANCE, forced: true, simulated: false, ...request },
    { status, balanceCents },
    DEFAULT_FEE_PLAN,
  );

/** status, what is asked for, and the type, reason, party charged and balance that come of it. */
const RULES: [CardStatus, Partial<TransactionRequest>, string, string | null, string, number][] = [
  ['active', {}, 'purchase', null, 'card', 0],
  ['active', { forced: false }, 'purchase', null, 'card', 0],
  ['active', { amountCents: BALANCE + 1 }, 'decline', 'insufficient_card_balance', 'card', BALANCE],
  ['active', { type: 'refund' }, 'refund', null, 'card', 2 * BALANCE],
  ['active', { type: 'decline' }, 'decline', 'declined_by_network', 'card', BALANCE],
  ['active', { type: 'decline', simulated: true }, 'decline', 'simulated_decline', 'card', BALANCE],
  ['active', { simulated: true, forced: false }, 'purchase', null, 'card', 0],
  ['frozen', { amountCents: 1 }, 'decline', 'card_frozen', 'card', BALANCE],
  ['frozen', { amountCents: 1, forced: false }, 'decline', 'card_frozen', 'card', BALANCE],
  ['frozen', { type: 'refund' }, 'refund', null, 'card', 2 * BALANCE],
  ['frozen', { type: 'decline' }, 'decline', 'declined_by_network', 'card', BALANCE],
  ['blocked', {}, 'purchase', null, 'partner_balance', BALANCE],
  ['blocked', { amountCents: 10 ** 9 }, 'purchase', null, 'partner_balance', BALANCE],
  ['blocked', { forced: false }, 'decline', 'card_blocked', 'card', BALANCE],
  ['blocked', { type: 'refund' }, 'refund', null, 'partner_balance', BALANCE],
  ['blocked', { type: 'decline' }, 'decline', 'declined_by_network', 'card', BALANCE],
  ['failed', { byHand: true }, 'purchase', null, 'partner_balance', BALANCE],
  ['failed', { byHand: true, type: 'refund' }, 'refund', null, 'partner_balance', BALANCE],
  ['active', { byHand: true }, 'purchase', null, 'card', 0],
];

describe('decideTransaction', () => {
  for (const [status, request, type, declineReason, chargedTo, cardBalanceAfterCents] of RULES) {
    it(`charges ${chargedTo} with ${declineReason ?? type} for ${JSON.stringify(request)} on a card that is ${status}`, () => {
      const { fees, ...decision } = decide(status, request);
      assert.deepEqual(decision, { type, declineReason, chargedTo, cardBalanceAfterCents });
      if (request.amountCents !== 10 ** 9) assert.deepEqual(fees, FEES[type as keyof typeof FEES]);
    });
  }

  for (const [status, simulated] of [
    ['funding_pending', false],
    ['failed', false],
    ['funding_pending', true],
    ['failed', true],
    ['frozen', true],
    ['blocked', true],
  ] as const) {
    it(`refuses ${simulated ? 'a simulated transaction' : "the network's transaction"} on a card that is ${status} with invalid_state`, () => {
      for (const type of ['purchase', 'decline', 'refund'] as const) {
        assert.throws(
          () => decide(status, { type, simulated }),
          (error) =>
            error instanceof ApiError && error.code === 'invalid_state' && error.message.includes(status),
        );
      }
    });
  }

  it('refuses a refund that would take the card past the largest integer', () => {
    const room = Number.MAX_SAFE_INTEGER - BALANCE;
    assert.equal(
      decide('active', { type: 'refund', amountCents: room }).cardBalanceAfterCents,
      Number.MAX_SAFE_INTEGER,
    );
    assert.throws(
      () => decide('active', { type: 'refund', amountCents: room + 1 }),
      (error) => error instanceof ApiError && error.code === 'validation_failed',
    );
    // The partner's balance is not the card's.
    decide('blocked', { type: 'refund', amountCents: room + 1 });
  });
});

const plan = (more: Partial<FeePlan>): FeePlan => ({
  ...DEFAULT_FEE_PLAN,
  transactionFlatCents: 0,
  transactionBasisPoints: 0,
  declineFlatCents: 0,
  ...more,
});
const feeOf = (more: Partial<FeePlan>, amountCents: number) =>
  transactionFees(plan(more), 'purchase', amountCents);

describe('transactionFees', () => {
  it('charges a flat fee and basis points for a purchase', () => {
    const fees = feeOf({ transactionFlatCents: 10, transactionBasisPoints: 50 }, 10_000);
    assert.deepEqual(fees, [{ type: 'transaction', amount: 60 }]);
  });

  it('rounds basis points half up', () => {
    for (const [amountCents, cents] of [
      [99, 0],
      [100, 1],
      [299, 1],
      [300, 2],
    ] as const) {
      const fees = feeOf({ transactionBasisPoints: 50 }, amountCents);
      assert.equal(fees[0]?.amount ?? 0, cents, String(amountCents));
    }
  });

  it('charges a flat fee for a decline, whatever its amount, and none for a refund', () => {
    const own = plan({ transactionFlatCents: 7, transactionBasisPoints: 10_000, declineFlatCents: 25 });
    for (const amountCents of [1, 10_000, Number.MAX_SAFE_INTEGER]) {
      assert.deepEqual(transactionFees(own, 'decline', amountCents), [{ type: 'decline', amount: 25 }]);
      assert.deepEqual(transactionFees(own, 'refund', amountCents), []);
    }
  });

  it('leaves out a fee of zero', () => {
    assert.deepEqual(feeOf({}, 10_000), []);
    assert.deepEqual(transactionFees(plan({}), 'decline', 10_000), []);
  });

  it('refuses a fee past the largest integer', () => {
    const dear = { transactionFlatCents: 1, transactionBasisPoints: 10_000 };
    assert.equal(feeOf(dear, Number.MAX_SAFE_INTEGER - 1)[0]?.amount, Number.MAX_SAFE_INTEGER);
    assert.throws(
      () => feeOf(dear, Number.MAX_SAFE_INTEGER),
      (error) => error instanceof ApiError && error.code === 'validation_failed',
    );
  });

  it('is exact to the cent for every plan and amount', () => {
    fc.assert(
      fc.property(
        fc.nat(1_000_000),
        fc.nat(10_000),
        fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER - 1_000_000 }),
        (transactionFlatCents, transactionBasisPoints, amountCents) => {
          const [fee] = feeOf({ transactionFlatCents, transactionBasisPoints }, amountCents);
          // Twice the distance from the exact fee, in ten-thousandths of a cent: rounding moves it by half a cent at most.
          const exact = BigInt(amountCents) * BigInt(transactionBasisPoints);
          const off = 2n * (BigInt((fee?.amount ?? 0) - transactionFlatCents) * 10_000n - exact);
          assert.ok(off > -10_000n && off <= 10_000n);
        },
      ),
    );
  });
});

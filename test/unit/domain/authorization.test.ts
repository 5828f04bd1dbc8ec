import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  type AuthorizationState,
  approvedState,
  clearedState,
  clearingShares,
  type DeclineReason,
  decideDecline,
  expiredState,
  incrementedState,
  reversedState,
} from '../../../domain/authorization.ts';

const cents = fc.integer({ min: 1, max: 1_000 });

describe('an authorization', () => {
  it('is decided by the status of the card, then by controls, then by its available balance', () => {
    const refusal = 'spending_limit_exceeded';
    const decide = (
      status: 'active' | 'frozen' | 'blocked',
      amountCents: number,
      refusedByControls: DeclineReason | null = null,
    ) => decideDecline({ status, availableCents: 10 }, amountCents, refusedByControls);
    assert.equal(decide('frozen', 11, refusal), 'card_frozen');
    assert.equal(decide('blocked', 11, refusal), 'card_blocked');
    assert.equal(decide('active', 11, refusal), refusal);
    assert.equal(decide('active', 11), 'insufficient_card_balance');
    assert.equal(decide('active', 10), null);
  });

  it('is paid by its hold, then by the card, then by the prepaid balance, together always the amount', () => {
    fc.assert(
      fc.property(cents, fc.nat(1_000), fc.nat(1_000), (amountCents, heldCents, availableCents) => {
        const shares = clearingShares(amountCents, { heldCents, availableCents });
        assert.equal(shares.fromHoldCents + shares.fromAvailableCents + shares.fromPartnerCents, amountCents);
        assert.ok(shares.fromHoldCents <= heldCents && shares.fromAvailableCents <= availableCents);
        if (shares.fromAvailableCents > 0) assert.equal(shares.fromHoldCents, heldCents);
        if (shares.fromPartnerCents > 0) assert.equal(shares.fromAvailableCents, availableCents);
      }),
    );
  });

  it('holds what is left of it while it is pending, and nothing afterwards, until more is approved', () => {
    const step = fc.record({
      kind: fc.constantFrom('increment', 'clear', 'clearFinally', 'reverse', 'expire'),
      amountCents: cents,
    });
    fc.assert(
      fc.property(cents, fc.array(step, { maxLength: 10 }), (firstCents, steps) => {
        let state: AuthorizationState = approvedState(firstCents);
        let leftCents = firstCents;
        for (const { kind, amountCents } of steps) {
          if (kind === 'clear') {
            state = clearedState(state, { amountCents, isFinal: false });
            leftCents = Math.max(0, leftCents - amountCents);
          }
          if (kind === 'clearFinally') {
            state = clearedState(state, { amountCents, isFinal: true });
            leftCents = 0;
          }
          if (kind === 'increment') {
            state = incrementedState(state, amountCents);
            leftCents += amountCents;
          }
          if (kind === 'reverse' && leftCents > 0) {
            const backCents = Math.min(amountCents, leftCents);
            const before = state.amountCents;
            state = reversedState(state, backCents);
            assert.equal(state.amountCents, before - backCents);
            leftCents -= backCents;
          }
          if (kind === 'expire' && leftCents > 0) {
            state = expiredState(state);
            leftCents = 0;
          }
          assert.equal(state.heldCents, leftCents);
          assert.equal(state.status === 'pending', leftCents > 0);
          if (state.status === 'closed') assert.ok(state.settledCents > 0);
        }
      }),
    );
  });

  it('that was cleared before its request arrived holds the rest, or nothing if that was final', () => {
    const cleared = (clearedCents: number, isFinal: boolean) =>
      approvedState(100, { cents: clearedCents, isFinal });
    assert.deepEqual(cleared(40, false), {
      status: 'pending',
      amountCents: 100,
      heldCents: 60,
      settledCents: 40,
    });
    for (const [clearedCents, isFinal] of [
      [40, true],
      [100, false],
      [150, false],
    ] as const) {
      const ended = { status: 'closed', amountCents: 100, heldCents: 0, settledCents: clearedCents };
      assert.deepEqual(cleared(clearedCents, isFinal), ended);
    }
  });
});

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { clearingShares, type DeclineReason, decideDecline } from '../../../domain/authorization.ts';

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
});

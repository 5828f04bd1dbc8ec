import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Request } from '../../../payments/pairing-rules.ts';
import type { PaymentAuthorization } from '../../../payments/rules.ts';
import { NETWORKS, Ours, play } from '../../support/payments/history.ts';
import { IncreaseIssuer } from '../../support/payments/issuers.ts';
import { propertyRuns } from '../../support/property-runs.ts';

const histories = fc.array(fc.nat(1_000_000), { minLength: 6, maxLength: 40 });

const asDecided = ({ decision, ...request }: Request): Request[] =>
  decision === null ? [] : [{ ...request, decision, told: null }];

/** What does not depend on when it was told, and what the card then had. What was declined stays as it was declined first. */
function shown(authorization: PaymentAuthorization | null) {
  if (authorization === null) return null;
  const { status, amountCents, targetCents, settledCents } = authorization;
  return status === 'declined' ? status : { status, amountCents, targetCents, settledCents };
}

describe('a payment, after whatever history', () => {
  for (const network of Object.keys(NETWORKS) as (keyof typeof NETWORKS)[]) {
    it(`comes to what the issuer's own books say: ${network}`, () => {
      fc.assert(
        fc.property(histories, (numbers) => {
          const { issuer, ours, last, initialCents, declined, hasNames } = play(network, numbers);
          const { card, payment } = ours;
          const { authorization } = payment;
          const heldCents = authorization?.heldCents ?? 0;

          assert.equal(card.heldCents, heldCents, 'the card holds what its payment holds');
          assert.equal(authorization?.targetCents ?? 0, issuer.holdCents, 'we know what the issuer holds');
          const remainingCents = initialCents - issuer.movedCents;
          assert.equal(card.balanceCents + card.prepaidCents, remainingCents, 'both fall by what has moved');
          assert.ok(heldCents <= issuer.holdCents);
          if (card.status === 'blocked') assert.equal(card.balanceCents, heldCents, 'all of it is held');
          else assert.equal(heldCents, Math.min(issuer.holdCents, card.balanceCents));
          if (!ours.wasShort) assert.equal(heldCents, issuer.holdCents);
          if (hasNames) assert.equal(ours.declines, declined, 'each declined request is a decline, once');

          const money = { balanceCents: 1_000_000, heldCents: 0, prepaidCents: 0 };
          const alone = new Ours({ status: 'active', ...money });
          alone.nowMs = ours.nowMs;
          alone.payment = { ...alone.payment, requests: payment.requests.flatMap(asDecided) };
          for (const made of ours.handMade) alone.handMade.set(...made);
          alone.book(last);
          // The last snapshot alone comes to the same.
          assert.deepEqual(shown(authorization), shown(alone.payment.authorization));
          assert.equal(payment.clearedCents, alone.payment.clearedCents);

          const again = ours.book(last);
          assert.deepEqual([again.movements, again.declines], [[], []], 'again, it changes nothing');
          assert.deepEqual(again.payment, payment);

          ours.nowMs = Date.parse('2026-03-01T00:00:00Z');
          ours.book(issuer.read().snapshot());
          const leftCents = ours.payment.authorization?.heldCents ?? 0;
          assert.equal(card.heldCents - heldCents + leftCents, 0, 'it expires');
          ours.block();
          if (issuer instanceof IncreaseIssuer) issuer.expiresAt = '2026-04-01T00:00:00.000Z';
          issuer.request(7, true, null);
          ours.book(issuer.read().snapshot());
          assert.equal(ours.payment.authorization?.targetCents, issuer.holdCents, 'until more is approved');
        }),
        { numRuns: propertyRuns(2_000) },
      );
    });
  }
});

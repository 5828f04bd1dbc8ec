import { z } from 'zod';
import { ApiError } from '../../domain/api-error.ts';
import type { CardStatus } from '../../domain/card-status.ts';

export const TopUpStatus = z.enum(['pending', 'succeeded', 'failed']).meta({
  id: 'TopupStatus',
  description:
    '`pending`: the money is held, and the card network is loading the card. `succeeded`: the money is on the card. ' +
    '`failed`: the money was released.',
});
export type TopUpStatus = z.infer<typeof TopUpStatus>;

/** Why a top-up that was accepted failed (docs/partners/topups.md). */
export const TopUpFailureCode = z
  .enum(['provider_declined', 'topup_failed', 'card_blocked', 'operator_failed'])
  .meta({
    id: 'TopupFailureCode',
    description:
      '`provider_declined`: the card network declined the request. `topup_failed`: the card network accepted the request and ' +
      'then could not put the money on the card. `card_blocked`: the card was blocked while the top-up was pending. ' +
      '`operator_failed`: the card network never told us the outcome, and we confirmed with it that the money is not on the ' +
      'card.',
  });
export type TopUpFailureCode = z.infer<typeof TopUpFailureCode>;

/** Only an `active` card can be topped up (docs/partners/topups.md). */
export function topUpNotPossible(status: CardStatus): ApiError {
  const canBecomeActive = status === 'funding_pending' || status === 'frozen';
  return new ApiError('invalid_state', {
    message:
      `The card is ${status}. Only an active card can be topped up, and nothing was debited.` +
      (canBecomeActive
        ? ' Once it is active, use a new Idempotency-Key: the one you used keeps this response.'
        : ''),
  });
}

/** For a card that an operator confirmed as issued without the network's id for it. */
export function unknownCardTopUp(): ApiError {
  return new ApiError('invalid_state', {
    message:
      "The card is active, but we do not have the card network's id for it, so it cannot be topped up, and nothing was " +
      'debited. Contact us.',
  });
}

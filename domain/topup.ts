import { z } from 'zod';
import { ApiError } from './api-error.ts';
import type { CardStatus } from './card-status.ts';

export const TopUpStatus = z.enum(['pending', 'succeeded', 'failed']).meta({
  id: 'TopupStatus',
  description:
    '`pending`: the money is held, and the card network is loading the card. `succeeded`: it is on the card. ' +
    '`failed`: it was released.',
});
export type TopUpStatus = z.infer<typeof TopUpStatus>;

/** Why a top-up that was accepted came to nothing (decisions.md, "Resources"). */
export const TopUpFailureCode = z
  .enum(['provider_declined', 'topup_failed', 'card_blocked', 'operator_failed'])
  .meta({
    id: 'TopupFailureCode',
    description:
      '`provider_declined`: the card network refused. `topup_failed`: the card network accepted the top-up, then could ' +
      'not load the card. `card_blocked`: the card was blocked while the top-up was pending. `operator_failed`: the card ' +
      'network never answered, and we found that the card was not loaded.',
  });
export type TopUpFailureCode = z.infer<typeof TopUpFailureCode>;

/** partner-api.md, "States and transitions": a top-up is for an `active` card alone. */
export function topUpNotPossible(status: CardStatus): ApiError {
  return new ApiError('invalid_state', {
    message: `The card is ${status}. Only an active card can be topped up.`,
  });
}

/** For a card that an operator took for issued while the network said nothing: it has no id there. */
export function topUpOfUnknownCard(): ApiError {
  return new ApiError('invalid_state', {
    message:
      'The card is active, but we do not have its id at the card network, so it cannot be topped up. Contact us.',
  });
}

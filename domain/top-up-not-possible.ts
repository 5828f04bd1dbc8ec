import { ApiError } from './api-error.ts';
import type { CardStatus } from './card-status.ts';

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

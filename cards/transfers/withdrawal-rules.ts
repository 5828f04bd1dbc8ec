import { z } from 'zod';
import { ApiError } from '../../domain/api-error.ts';
import type { CardStatus } from '../../domain/card-status.ts';

export const WithdrawalStatus = z.enum(['pending', 'succeeded', 'failed']).meta({
  id: 'WithdrawalStatus',
  description:
    '`pending`: the money is held on the card, and the card network is taking it off the card. `succeeded`: the money is in ' +
    'your balance. `failed`: the money was released.',
});
export type WithdrawalStatus = z.infer<typeof WithdrawalStatus>;

/** Why a withdrawal that was accepted failed (docs/partners/withdrawals.md). */
export const WithdrawalFailureCode = z
  .enum(['provider_declined', 'withdrawal_failed', 'operator_failed'])
  .meta({
    id: 'WithdrawalFailureCode',
    description:
      '`provider_declined`: the card network declined the request. `withdrawal_failed`: the card network accepted the ' +
      'request and then could not take the money off the card. `operator_failed`: the card network never told us the ' +
      'outcome, and we confirmed with it that the money is still on the card.',
  });
export type WithdrawalFailureCode = z.infer<typeof WithdrawalFailureCode>;

/** Only an `active` or a `frozen` card has money to withdraw (docs/partners/withdrawals.md). */
export function withdrawalRefusal(status: CardStatus): ApiError | null {
  switch (status) {
    case 'active':
    case 'frozen':
      return null;
    case 'funding_pending':
      return new ApiError('invalid_state', {
        message:
          'The card is funding_pending. Money can only be withdrawn from an active or a frozen card, and nothing was moved. ' +
          'Once it is active, use a new Idempotency-Key: the one you used keeps this response.',
      });
    case 'blocked':
      return new ApiError('invalid_state', {
        message:
          'The card is blocked. Blocking it has already returned its available balance to yours, and nothing was moved now.',
      });
    case 'failed':
      return new ApiError('invalid_state', {
        message: 'The card is failed. It never had any money, and nothing was moved.',
      });
  }
}

/** For a card that an operator confirmed as issued without the network's id for it. */
export function unknownCardWithdrawal(): ApiError {
  return new ApiError('invalid_state', {
    message:
      "We do not have the card network's id for this card, so no money can be withdrawn from it, and nothing was moved. " +
      'Contact us.',
  });
}

/** @param availableCents the card's available balance */
export function insufficientCardBalance(amountCents: number, availableCents: number): ApiError {
  return new ApiError('insufficient_card_balance', {
    message:
      `The withdrawal needs ${amountCents} cents, and the card has ${availableCents} cents available. Nothing was moved. ` +
      'Use a new Idempotency-Key for a smaller amount: the one you used keeps this response.',
  });
}

import { z } from 'zod';
import { ApiError } from '../../domain/api-error.ts';
import type { CardStatus } from '../../domain/card-status.ts';
import { MAX_AMOUNT_CENTS } from '../../domain/money.ts';
import type { TransferDirection } from '../../domain/transfer.ts';

const STATUSES = ['pending', 'succeeded', 'failed'] as const;

export const TopUpStatus = z.enum(STATUSES).meta({
  id: 'TopupStatus',
  description:
    '`pending`: the money is held, and the card network is loading the card. `succeeded`: the money is on the card. ' +
    '`failed`: the money was released.',
});
export const WithdrawalStatus = z.enum(STATUSES).meta({
  id: 'WithdrawalStatus',
  description:
    '`pending`: the money is held on the card, and the card network is taking it off the card. `succeeded`: the money is in ' +
    'your balance. `failed`: the money was released.',
});
export type TransferStatus = (typeof STATUSES)[number];

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
export type TransferFailureCode = z.infer<typeof TopUpFailureCode> | z.infer<typeof WithdrawalFailureCode>;

/**
 * Why a card with this status takes no such transfer; null if it does (docs/partners/topups.md,
 * docs/partners/withdrawals.md).
 */
export function transferRefusal(direction: TransferDirection, status: CardStatus): ApiError | null {
  const possible: readonly CardStatus[] = direction === 'topup' ? ['active'] : ['active', 'frozen'];
  if (possible.includes(status)) return null;
  const message = direction === 'topup' ? topUpNotPossible(status) : withdrawalNotPossible(status);
  return new ApiError('invalid_state', { message });
}

const ONCE_ACTIVE = ' Once it is active, use a new Idempotency-Key: the one you used keeps this response.';

function topUpNotPossible(status: CardStatus): string {
  const canBecomeActive = status === 'funding_pending' || status === 'frozen';
  return (
    `The card is ${status}. Only an active card can be topped up, and nothing was debited.` +
    (canBecomeActive ? ONCE_ACTIVE : '')
  );
}

function withdrawalNotPossible(status: CardStatus): string {
  if (status === 'blocked')
    return 'The card is blocked. Blocking it has already returned its available balance to yours, and nothing was moved now.';
  if (status === 'failed') return 'The card is failed. It never had any money, and nothing was moved.';
  return `The card is ${status}. Money can only be withdrawn from an active or a frozen card, and nothing was moved.${ONCE_ACTIVE}`;
}

/** While a card's id at the network is looked up again: under a wrong one, it would wait for its deadline. */
export const unknownCard = (): ApiError =>
  new ApiError('invalid_state', {
    message:
      'We are finding out from the card network which of its cards this is. Until then, no money can be loaded onto it ' +
      'or withdrawn from it, and nothing was moved. Try again in a few minutes with a new Idempotency-Key. If that does ' +
      'not help, contact us.',
  });

/** @throws ApiError `validation_failed` if what the amount is added to would pass the largest integer */
export function requireRoom(
  direction: TransferDirection,
  amountCents: number,
  presentCents: number | bigint,
): void {
  if (BigInt(presentCents) + BigInt(amountCents) <= BigInt(MAX_AMOUNT_CENTS)) return;
  const balance = direction === 'topup' ? "the card's balance" : 'your balance';
  throw ApiError.ofField(
    'amount',
    `amount would take ${balance} above the maximum of ${MAX_AMOUNT_CENTS} cents`,
  );
}

/** @param availableCents the card's available balance */
export function insufficientCardBalance(amountCents: number, availableCents: number): ApiError {
  return new ApiError('insufficient_card_balance', {
    message:
      `The withdrawal needs ${amountCents} cents, and the card has ${availableCents} cents available. Nothing was moved. ` +
      'Use a new Idempotency-Key for a smaller amount: the one you used keeps this response.',
  });
}

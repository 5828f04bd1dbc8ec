import { z } from 'zod';
import { ApiError } from './api-error.ts';
import type { WorkflowOperation } from './claim-operation.ts';

/** docs/partners/cards.md says what each status means. */
export const CardStatus = z.enum(['funding_pending', 'active', 'frozen', 'blocked', 'failed']).meta({
  id: 'CardStatus',
  description:
    '`funding_pending`: being issued. `active`: usable. `frozen`: authorizations decline until you unfreeze it. ' +
    '`blocked`: permanently closed. `failed`: could not be issued; nothing was debited.',
});
export type CardStatus = z.infer<typeof CardStatus>;

export type StatusChangeOperation = Extract<
  WorkflowOperation,
  'freeze_card' | 'unfreeze_card' | 'block_card'
>;

/** A status that an issued card can be set to. */
export type SettableStatus = Extract<CardStatus, 'active' | 'frozen' | 'blocked'>;

interface StatusChange {
  from: readonly CardStatus[];
  to: SettableStatus;
  event: 'card.frozen' | 'card.unfrozen' | 'card.blocked';
  /** As in "can be frozen". */
  participle: string;
}

/** Which changes a status allows, and what they lead to (docs/partners/card-status.md). */
export const STATUS_CHANGES: Readonly<Record<StatusChangeOperation, StatusChange>> = {
  freeze_card: { from: ['active'], to: 'frozen', event: 'card.frozen', participle: 'frozen' },
  unfreeze_card: { from: ['frozen'], to: 'active', event: 'card.unfrozen', participle: 'unfrozen' },
  block_card: { from: ['active', 'frozen'], to: 'blocked', event: 'card.blocked', participle: 'blocked' },
};

/**
 * `invalid_state`, naming the status, if a card in this status can't be changed like this; null if it can.
 */
export function statusChangeRefusal(status: CardStatus, operation: StatusChangeOperation): ApiError | null {
  const { from, participle } = STATUS_CHANGES[operation];
  if (from.includes(status)) return null;
  return new ApiError('invalid_state', {
    message: `The card is ${status}. Only a card that is ${from.join(' or ')} can be ${participle}.`,
  });
}

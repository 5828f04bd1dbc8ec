import { ApiError } from './api-error.ts';
import type { CardStatus } from './card-status.ts';
import type { WorkflowOperation } from './claim-operation.ts';
import type { EventType } from './event.ts';

export type StatusChangeOperation = Extract<
  WorkflowOperation,
  'freeze_card' | 'unfreeze_card' | 'block_card'
>;

/** What one request makes of a card. */
export interface StatusChange {
  from: readonly CardStatus[];
  to: 'active' | 'frozen' | 'blocked';
  event: EventType;
  /** As in "can be frozen". */
  done: string;
}

/** partner-api.md, "States and transitions"; decisions.md, "Rules", says from where. */
export const STATUS_CHANGES: Readonly<Record<StatusChangeOperation, StatusChange>> = {
  freeze_card: { from: ['active'], to: 'frozen', event: 'card.frozen', done: 'frozen' },
  unfreeze_card: { from: ['frozen'], to: 'active', event: 'card.unfrozen', done: 'unfrozen' },
  block_card: { from: ['active', 'frozen'], to: 'blocked', event: 'card.blocked', done: 'blocked' },
};

/** Why a card in this status can't be changed so: `invalid_state`, naming the status; null where it can. */
export function refusalOf(status: CardStatus, operation: StatusChangeOperation): ApiError | null {
  const { from, done } = STATUS_CHANGES[operation];
  if (from.includes(status)) return null;
  return new ApiError('invalid_state', {
    message: `The card is ${status}. Only a card that is ${from.join(' or ')} can be ${done}.`,
  });
}

import type { TransferDirection } from '../domain/transfer.ts';

/** What can be looked up after its end. */
export type LateKind = 'card' | TransferDirection;

/** What the network says about an operation that has ended: `yes` and `no` are definite, `none` is not. */
export type LateAnswer = 'yes' | 'no' | 'unknown' | 'none';

/** What an operator decided about a contradiction. A refused decision has changed nothing. */
export interface LateDecision {
  outcome: 'booked' | 'dismissed';
  refused?: WhyNotBooked;
}

export type WhyNotBooked = 'insufficient_funds' | 'card_closed' | 'not_recordable';

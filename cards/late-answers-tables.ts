import { defineEntity, p } from '@mikro-orm/core';
import type { Fee } from '../domain/fees.ts';
import type { TransferDirection } from '../domain/transfer.ts';

/** An issuance or a transfer that has ended, about which the network may still say something else. */
export const LateAnswerEntity = defineEntity({
  name: 'LateAnswer',
  tableName: 'late_answer',
  properties: {
    /** Of the card or the transfer. */
    id: p.text().collation('C').primary(),
    kind: p.text().$type<LateKind>(),
    partnerId: p.text().nullable(),
    /** The card that a transfer was about. */
    cardId: p.text().collation('C').nullable(),
    amountCents: p.bigint('string').nullable(),
    fees: p.json().$type<Fee[]>().nullable(),
    retryAfter: p.datetime().defaultRaw('now()'),
    attempts: p.integer().default(0),
    /** What the network said, if that contradicts our record. */
    said: p.text().$type<'yes' | 'no'>().nullable(),
    networkCardId: p.text().nullable(),
    contradictsSince: p.datetime().nullable(),
    decision: p.json().$type<LateDecision>().nullable(),
    createdAt: p.datetime().defaultRaw('now()'),
  },
});

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

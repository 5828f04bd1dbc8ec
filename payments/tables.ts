import { defineEntity, p } from '@mikro-orm/core';
import type { DeclineReason } from '../domain/authorization.ts';
import type { Mode } from '../domain/mode.ts';
import type { HandMade, Payment } from './rules.ts';

/** A payment as the network has it: what is more than partners see of its authorization and transactions. */
export const PaymentEntity = defineEntity({
  name: 'Payment',
  tableName: 'payment',
  properties: {
    mode: p.text().$type<Mode>().primary(),
    /** The network's id; in test mode, its authorization's. */
    paymentId: p.text().collation('C').primary(),
    partnerId: p.text(),
    cardId: p.text().collation('C'),
    authorizationId: p.text().collation('C').nullable(),
    said: p.json().$type<Payment['said']>(),
    requests: p.json().$type<Payment['requests']>(),
    clearedCents: p.bigint('string'),
    isExpired: p.boolean(),
    /** When an issuer is asked for it again, whether or not it tells anything; null if it is over. */
    readAfter: p.datetime().nullable(),
  },
});

/** What the simulated network has said. */
export const SimulatedMessageEntity = defineEntity({
  name: 'SimulatedMessage',
  tableName: 'simulated_message',
  properties: {
    /** The network's id. */
    id: p.text().collation('C').primary(),
    seq: p.bigint('string').generated('identity'),
    paymentId: p.text().collation('C'),
    networkCardId: p.text().collation('C'),
    said: p.json().$type<object>(),
    /** What became of it; null as long as it can't be booked. */
    answer: p.json().$type<MessageAnswer>().nullable(),
    createdAt: p.datetime().defaultRaw('now()'),
  },
});

/** What the simulated network is answered. */
export interface MessageAnswer {
  /** Why a request or a purchase was declined; null if it was not. */
  declineReason: DeclineReason | null;
  authorizationId: string | null;
  transactionId: string | null;
}

/** What an element of a payment means that only a person could say. */
export const PaymentElementEntity = defineEntity({
  name: 'PaymentElement',
  tableName: 'payment_element',
  properties: {
    /** The network's id. */
    id: p.text().collation('C').primary(),
    means: p.text().$type<HandMade['means']>().collation('C'),
    amountCents: p.bigint('string').nullable(),
    /** The network's id. */
    paymentId: p.text().collation('C'),
    /** The payment's card, if it is not the one that the network names. */
    cardId: p.text().collation('C').nullable(),
    requestedBy: p.text(),
    requestedLogin: p.text().defaultRaw('session_user'),
    /** A large amount counts only once another person has approved it. */
    approved: p.boolean(),
    approvedBy: p.text().nullable(),
    approvedLogin: p.text().nullable(),
    createdAt: p.datetime().defaultRaw('now()'),
  },
});

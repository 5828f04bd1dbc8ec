import { defineEntity, p } from '@mikro-orm/core';
import type { Mode } from '../domain/mode.ts';
import type { FoldedPayment } from '../domain/payment.ts';
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
    /** Of the simulated network: its messages, folded. */
    folded: p.json().$type<FoldedPayment>().nullable(),
  },
});

/** What an element of a payment means that only a person could read. */
export const PaymentElementEntity = defineEntity({
  name: 'PaymentElement',
  tableName: 'payment_element',
  properties: {
    mode: p.text().$type<'live'>().primary(),
    /** The network's id. */
    elementId: p.text().collation('C').primary(),
    means: p.text().$type<HandMade['means']>().collation('C'),
    amountCents: p.bigint('string').nullable(),
  },
});

import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import type { CardStatus } from '../../domain/card-status.ts';
import type { Fee } from '../../domain/fees.ts';
import type { Mode } from '../../domain/mode.ts';
import { tenantFilter } from './tenant-filter.ts';

export const CardEntity = defineEntity({
  name: 'Card',
  tableName: 'card',
  filters: tenantFilter,
  properties: {
    id: p.string().primary(),
    partnerId: p.string(),
    mode: p.string().$type<Mode>(),
    status: p.string().$type<CardStatus>(),
    externalRef: p.string(),
    cardName: p.string().nullable(),
    cardholderFirstName: p.string().nullable(),
    cardholderLastName: p.string().nullable(),
    email: p.string().nullable(),
    productCode: p.string(),
    network: p.string(),
    networkCardId: p.string().nullable(),
    last4: p.string().nullable(),
    expMonth: p.integer().nullable(),
    expYear: p.integer().nullable(),
    failureCode: p.string().nullable(),
    fundingCents: p.bigint('number'),
    fees: p.json().$type<Fee[]>(),
    overdueSince: p.datetime().nullable(),
    createdAt: p.datetime(),
    /** Cents on the card, from the ledger: there is no second copy of it. */
    balanceCents: p
      .bigint('number')
      .formula((card) => `coalesce((SELECT a.posted FROM ledger.account a WHERE a.card_id = ${card}.id), 0)`),
  },
});
export type Card = InferEntity<typeof CardEntity>;

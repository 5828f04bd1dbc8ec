import { defineEntity, p } from '@mikro-orm/core';
import type { SettableStatus } from '../../domain/card-status.ts';

const schema = 'simulated_network';

export type OperationKind = 'card.issuance' | 'card.topup' | 'card.withdrawal' | 'card.status';

/** A request to the simulated network, and its result. */
export const SimulatedOperationEntity = defineEntity({
  name: 'SimulatedOperation',
  schema,
  tableName: 'operation',
  properties: {
    token: p.text().primary(),
    kind: p.text().$type<OperationKind>(),
    request: p.json().$type<Record<string, unknown>>(),
    attempts: p.integer().default(1),
    createdAt: p.datetime().defaultRaw('now()'),
    takenAt: p.datetime().nullable(),
    outcome: p.text().$type<'succeeded' | 'declined' | 'failed'>().nullable(),
    /** Null: never. */
    completesAt: p.datetime().nullable(),
  },
});

export const SimulatedCardEntity = defineEntity({
  name: 'SimulatedCard',
  schema,
  tableName: 'card',
  properties: {
    networkCardId: p.text().primary(),
    token: p.text(),
    last4: p.text().fieldName('last4'),
    expMonth: p.smallint(),
    expYear: p.smallint(),
    status: p.text().$type<SettableStatus>().default('active'),
  },
});

export const SimulatedCallbackEntity = defineEntity({
  name: 'SimulatedCallback',
  schema,
  tableName: 'callback',
  properties: {
    id: p.bigint('string').generated('identity').primary(),
    token: p.text(),
    dueAt: p.datetime(),
    attempts: p.integer().default(0),
  },
});

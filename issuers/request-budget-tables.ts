import { defineEntity, p } from '@mikro-orm/core';

/** What requests a card network can be sent now. A network's first request inserts its row. */
export const RequestBudgetEntity = defineEntity({
  name: 'RequestBudget',
  tableName: 'request_budget',
  properties: {
    network: p.text().collation('C').primary(),
    fullAt: p.datetime().defaultRaw('now()'),
    pausedUntil: p.datetime().defaultRaw('now()'),
    authorizationPromisedAt: p.datetime().defaultRaw('now()'),
    revealPromisedAt: p.datetime().defaultRaw('now()'),
    operationPromisedAt: p.datetime().defaultRaw('now()'),
    eventPromisedAt: p.datetime().defaultRaw('now()'),
    reconciliationPromisedAt: p.datetime().defaultRaw('now()'),
  },
});

import { defineEntity, p } from '@mikro-orm/core';

/** What is measured of the whole database. Migrations insert the names. */
export type MeasurementName =
  | 'webhooks'
  | 'deposits'
  | 'attention'
  | 'ledger_check'
  | 'reconciliation'
  | 'authorizations'
  | 'network_inbox';

/** The last result of something that one process measures for all. */
export const MeasurementEntity = defineEntity({
  name: 'Measurement',
  tableName: 'measurement',
  properties: {
    name: p.text().collation('C').primary().$type<MeasurementName>(),
    dueAt: p.datetime().defaultRaw("'-infinity'"),
    /** Since when it is to be measured. */
    createdAt: p.datetime().defaultRaw('now()'),
    measuredAt: p.datetime().nullable(),
    result: p.json().$type<unknown>().nullable(),
  },
});

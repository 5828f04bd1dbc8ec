import { defineEntity, p } from '@mikro-orm/core';

/**
 * `missing_here`: only the card network has it. `missing_at_issuer`: only we have it. `different`: both have
 * it, and not the same. `set_up`: how the network is set up needs a person.
 */
export type ReconciliationProblem = 'missing_here' | 'missing_at_issuer' | 'different' | 'set_up';

/** How our record and the card network's lists differ. */
export const ReconciliationFindingEntity = defineEntity({
  name: 'ReconciliationFinding',
  tableName: 'reconciliation_finding',
  properties: {
    id: p.text().collation('C').primary(),
    network: p.text().collation('C'),
    problem: p.text().collation('C').$type<ReconciliationProblem>(),
    kind: p.text().collation('C').$type<'card' | 'movement' | 'transaction' | 'network'>(),
    objectId: p.text().collation('C'),
    issuerId: p.text().collation('C'),
    detail: p.text().collation('C'),
    madeAfter: p.datetime(),
    firstFoundAt: p.datetime().defaultRaw('clock_timestamp()'),
    lastFoundAt: p.datetime().defaultRaw('clock_timestamp()'),
    dismissedAt: p.datetime().nullable(),
  },
});

/** What a run of the reconciliation has seen in the network's lists. */
export const ReconciliationSeenEntity = defineEntity({
  name: 'ReconciliationSeen',
  tableName: 'reconciliation_seen',
  properties: {
    runId: p.text().collation('C').primary(),
    kind: p.text().collation('C').primary(),
    key: p.text().collation('C').primary(),
  },
});

import { defineEntity, p } from '@mikro-orm/core';
import type { WhyKept } from '../../domain/network-transaction.ts';

/** What the card network reported and could not be booked at once. */
export const NetworkMessageEntity = defineEntity({
  name: 'NetworkMessage',
  tableName: 'network_message',
  properties: {
    id: p.text().collation('C').primary(),
    network: p.text().collation('C'),
    kind: p.text().$type<'transaction'>().collation('C'),
    /** The network's id for it. */
    messageId: p.text().collation('C'),
    fingerprint: p.blob(),
    /** What was received. Sealed. */
    body: p.blob(),
    sizeBytes: p.integer(),
    networkCardId: p.text().collation('C').nullable(),
    status: p.text().$type<NetworkMessageStatus>().collation('C').default('waiting'),
    reason: p.text().$type<WhyKept>().collation('C'),
    transactionId: p.text().collation('C').nullable(),
    createdAt: p.datetime().defaultRaw('now()'),
    retryAfter: p.datetime().defaultRaw("'-infinity'"),
    endedAt: p.datetime().nullable(),
  },
});

export type NetworkMessageStatus = 'waiting' | 'booked' | 'dismissed';

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
    /** Null if it can't be read, or was kept before this was. */
    amountCents: p.bigint('string').nullable(),
    status: p.text().$type<NetworkMessageStatus>().collation('C').default('waiting'),
    reason: p.text().$type<WhyKept>().collation('C'),
    transactionId: p.text().collation('C').nullable(),
    createdAt: p.datetime().defaultRaw('now()'),
    retryAfter: p.datetime().defaultRaw("'-infinity'"),
    endedAt: p.datetime().nullable(),
  },
});

export type NetworkMessageStatus = 'waiting' | 'booked' | 'dismissed';

/** An event that the card network posted, kept before it was answered. */
export const NetworkEventEntity = defineEntity({
  name: 'NetworkEvent',
  tableName: 'network_event',
  properties: {
    id: p.text().collation('C').primary(),
    network: p.text().collation('C'),
    /** The network's id for it. */
    eventId: p.text().collation('C'),
    /** What the network's adapter picked of it. Sealed. */
    body: p.blob(),
    sizeBytes: p.integer(),
    status: p.text().$type<NetworkEventStatus>().collation('C').default('waiting'),
    reason: p.text().$type<WhyWaiting>().collation('C').nullable(),
    attempts: p.integer().default(0),
    retryAfter: p.datetime().defaultRaw("'-infinity'"),
    createdAt: p.datetime().defaultRaw('now()'),
    endedAt: p.datetime().nullable(),
  },
});

export type NetworkEventStatus = 'waiting' | 'done' | 'dismissed';
/**
 * Why the last attempt to read it did not end it. `network_unavailable`: the network gave no answer about its
 * object.
 * `not_readable`: this release can't read it. `not_taken`: one of its messages could not be taken.
 */
export type WhyWaiting = 'network_unavailable' | 'not_readable' | 'not_taken';

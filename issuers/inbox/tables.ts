import { defineEntity, p } from '@mikro-orm/core';

/** What has changed at the card network, until it has been looked at. */
export const NetworkInboxEntity = defineEntity({
  name: 'NetworkInbox',
  tableName: 'network_inbox',
  properties: {
    /** The network's id of the payment or the transfer. */
    id: p.text().collation('C').primary(),
    network: p.text().collation('C'),
    kind: p.text().$type<'payment' | 'transfer'>().collation('C'),
    seq: p.bigint('string').generated('identity'),
    /** The newest state of it, if the network sends it whole. Sealed. */
    body: p.blob().nullable(),
    sizeBytes: p.integer().default(0),
    version: p.json().$type<readonly number[]>().nullable(),
    networkCardId: p.text().collation('C').nullable(),
    /** Whose card it is, if that was known when it arrived. */
    partnerId: p.text().collation('C').nullable(),
    reason: p.text().$type<WhyWaiting>().collation('C').nullable(),
    elements: p.json().$type<WaitingElement[]>().defaultRaw("'[]'"),
    attempts: p.integer().default(0),
    retryAfter: p.datetime().defaultRaw('now()'),
    createdAt: p.datetime().defaultRaw('now()'),
  },
});

/**
 * Why the last attempt did not end it. `card_unknown`: no live card has its id at the network.
 * `card_not_issued`: its card is still being issued. `card_failed`: by our record, its card was never issued.
 * `unbookable`: a balance or a fee would leave the safe integers. `authorization_unknown`: it ends an
 * authorization whose request has not arrived. `network_unavailable`: the network gave no answer about it.
 * `not_readable`: this release can't read it. `not_taken`: an error of ours, or a lock.
 */
export const WHY_WAITING = [
  'card_unknown',
  'card_not_issued',
  'card_failed',
  'unbookable',
  'authorization_unknown',
  'network_unavailable',
  'not_readable',
  'not_taken',
] as const;
export type WhyWaiting = (typeof WHY_WAITING)[number];

/** Money of a payment whose card can't take it by itself, as the network wrote it. */
export interface WaitingElement {
  /** The network's id. */
  id: string;
  what: string;
  amount: number | null;
  currency: string | null;
}

import { defineEntity, p } from '@mikro-orm/core';
import type { NotRecorded, RecordedDecision } from '../../domain/decision.ts';
import type { Fee } from '../../domain/fees.ts';
import type { Mode } from '../../domain/mode.ts';
import type { TransferDirection } from '../../domain/transfer.ts';
import type { TransferFailureCode, TransferStatus } from './rules.ts';

/** Money that moves between the prepaid balance and a card. */
export const CardTransferEntity = defineEntity({
  name: 'CardTransfer',
  tableName: 'card_transfer',
  properties: {
    id: p.text().collation('C').primary(),
    partnerId: p.text(),
    mode: p.text().$type<Mode>(),
    cardId: p.text().collation('C'),
    direction: p.text().$type<TransferDirection>().collation('C'),
    /** Its claim, while it is pending. */
    claimId: p.text().collation('C').nullable(),
    status: p.text().$type<TransferStatus>(),
    failureCode: p.text().$type<TransferFailureCode>().nullable(),
    amountCents: p.bigint('string'),
    /** Of a top-up; a withdrawal has none. */
    fees: p.json().$type<Fee[]>().defaultRaw("'[]'"),
    /** The card's balance when it ended; null while pending. */
    cardBalanceCents: p.bigint('string').nullable(),
    overdueSince: p.datetime().nullable(),
    createdAt: p.datetime(),
    completedAt: p.datetime().nullable(),
    /** The UTC day whose usage a top-up counts in. */
    countedOn: p.type('date').$type<string>().nullable(),
    /** The card that the network was asked about; null in test mode. */
    asked: p.json().$type<{ networkCardId: string }>().nullable(),
    decision: p.json().$type<RecordedDecision>().nullable(),
    notRecorded: p.json().$type<NotRecorded>().nullable(),
  },
});

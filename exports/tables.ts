import { defineEntity, p } from '@mikro-orm/core';
import type { Mode } from '../domain/mode.ts';

/** A slot of an account, and the transfer of a report that holds it. */
export const ReportTransferEntity = defineEntity({
  name: 'ReportTransfer',
  tableName: 'report_transfer',
  properties: {
    partnerId: p.text().collation('C').primary(),
    mode: p.text().collation('C').$type<Mode>().primary(),
    slot: p.smallint().primary(),
    /** The transfer that holds it. */
    id: p.uuid(),
    leasedUntil: p.datetime(),
  },
});

/** The transfers of one of the ledger's codes that were booked on a day, and what they add up to. */
export interface Flow {
  code: string;
  count: number;
  cents: number;
}

/** A day of an account that is over, as its statement adds it up. */
export const DayClosingEntity = defineEntity({
  name: 'DayClosing',
  tableName: 'day_closing',
  properties: {
    partnerId: p.text().collation('C').primary(),
    mode: p.text().collation('C').$type<Mode>().primary(),
    day: p.date().primary(),
    flows: p.json<Flow[]>(),
    /** The prepaid balance at its end. */
    closingCents: p.bigint('string'),
    /** What all cards had together. */
    cardsClosingCents: p.bigint('string'),
  },
});

/** What cards spent and got back on a day that has no closing yet, as one session of the database adds it up. */
export const AccountDayEntity = defineEntity({
  name: 'AccountDay',
  tableName: 'account_day',
  properties: {
    partnerId: p.text().collation('C').primary(),
    mode: p.text().collation('C').$type<Mode>().primary(),
    day: p.date().primary(),
    session: p.integer().primary(),
    spentCents: p.bigint('string').defaultRaw('0'),
    refundedCents: p.bigint('string').defaultRaw('0'),
  },
});

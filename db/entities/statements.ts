import { defineEntity, p } from '@mikro-orm/core';
import type { Mode } from '../../domain/mode.ts';

/** The transfers of one of the ledger's codes that were booked in a month, and what they add up to. */
export interface Flow {
  code: string;
  count: number;
  cents: number;
}

/** A month of an account that is over, as its statement shows it. */
export const MonthClosingEntity = defineEntity({
  name: 'MonthClosing',
  tableName: 'month_closing',
  properties: {
    partnerId: p.text().collation('C').primary(),
    mode: p.text().collation('C').$type<Mode>().primary(),
    /** Its first day. */
    month: p.date().primary(),
    flows: p.json<Flow[]>(),
    /** The prepaid balance when it began, and at its end. */
    openingCents: p.bigint('string'),
    closingCents: p.bigint('string'),
    /** What all cards had together. */
    cardsOpeningCents: p.bigint('string'),
    cardsClosingCents: p.bigint('string'),
  },
});

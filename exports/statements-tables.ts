import { defineEntity, p } from '@mikro-orm/core';
import type { Mode } from '../domain/mode.ts';

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

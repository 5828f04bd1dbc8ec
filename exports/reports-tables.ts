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

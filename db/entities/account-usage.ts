import { defineEntity, p } from '@mikro-orm/core';
import type { Mode } from '../../domain/mode.ts';

/** What an account has used of its limits in one mode; one row for each mode from the account's birth on. */
export const AccountUsageEntity = defineEntity({
  name: 'AccountUsage',
  tableName: 'account_usage',
  properties: {
    partnerId: p.string().primary(),
    mode: p.string().$type<Mode>().primary(),
    openCards: p.integer().default(0),
    loadedCents: p.bigint('number').default(0),
  },
});

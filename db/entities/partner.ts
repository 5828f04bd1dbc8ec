import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import type { FeePlan } from '../../domain/fees.ts';
import type { AccountLimits } from '../../domain/limits.ts';

export const PartnerEntity = defineEntity({
  name: 'Partner',
  tableName: 'partner',
  properties: {
    id: p.string().primary(),
    name: p.string(),
    secureDetailsEnabled: p.boolean().default(false),
    /** Null: the platform's plan. */
    feePlan: p.json().$type<FeePlan>().nullable(),
    /** Null: the platform's limits. */
    limits: p.json().$type<AccountLimits>().nullable(),
    createdAt: p.datetime().onCreate(() => new Date()),
  },
});
export type Partner = InferEntity<typeof PartnerEntity>;

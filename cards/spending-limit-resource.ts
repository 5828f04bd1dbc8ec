import { z } from 'zod';
import { ObjectType } from '../domain/fields.ts';
import { LimitInterval, type LimitSpending } from '../domain/spending-controls.ts';

/** A limit as partners see it (docs/partners/spending-controls.md). */
export const SpendingLimitResource = z
  .object({
    object: ObjectType('spending_limit'),
    source: z
      .enum(['card', 'account'])
      .describe('Whose limit it is. A limit of your account applies to each card by itself.'),
    amount: z.int().min(1).describe('Cents that can be spent in the interval.'),
    interval: LimitInterval,
    categories: z
      .array(z.string())
      .nullable()
      .describe('Merchant category codes. Only merchants with these count. Null for all.'),
    spent: z
      .int()
      .min(0)
      .describe('Cents spent in the current interval, less refunds. 0 for `per_authorization`.'),
    remaining: z
      .int()
      .min(0)
      .describe('Cents that are left: `amount` less `spent`. 0 if more was spent, which clearings can do.'),
    resets_at: z.iso
      .datetime()
      .nullable()
      .describe('When the next interval begins. Null for `per_authorization` and `all_time`.'),
  })
  .meta({ id: 'SpendingLimit', description: 'A spending limit of a card, and how much of it was used.' });
export type SpendingLimitResource = z.infer<typeof SpendingLimitResource>;

export function presentSpendingLimit(limit: LimitSpending): SpendingLimitResource {
  const { spentCents: spent } = limit;
  return {
    object: 'spending_limit',
    source: limit.source,
    amount: limit.amount,
    interval: limit.interval,
    categories: limit.categories,
    spent,
    remaining: Math.max(0, limit.amount - spent),
    resets_at: limit.endsAt?.toISOString() ?? null,
  };
}

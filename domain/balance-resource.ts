import { z } from 'zod';
import { Mode } from './mode.ts';

/** decisions.md, "Resources": available + held = total. */
export const BalanceResource = z.object({
  object: z.literal('balance'),
  mode: Mode,
  currency: z.literal('USD'),
  available: z.int().meta({ description: 'Cents that can be spent.' }),
  held: z.int().meta({ description: 'Cents reserved by operations still in flight.' }),
  total: z.int(),
});
export type BalanceResource = z.infer<typeof BalanceResource>;

export interface BalanceCents {
  availableCents: number;
  heldCents: number;
  totalCents: number;
}

export function presentBalance(mode: Mode, balance: BalanceCents): BalanceResource {
  return {
    object: 'balance',
    mode,
    currency: 'USD',
    available: balance.availableCents,
    held: balance.heldCents,
    total: balance.totalCents,
  };
}

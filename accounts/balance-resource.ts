import { z } from 'zod';
import { ObjectType, Usd } from '../domain/fields.ts';
import { Mode } from '../domain/mode.ts';

/** available + held = total (docs/partners/money-fees-and-limits.md). */
export const BalanceResource = z
  .object({
    object: ObjectType('balance'),
    mode: Mode,
    currency: Usd,
    available: z
      .int()
      .describe('Cents you can spend. Below zero if fees or late debits exceeded the balance.'),
    held: z.int().min(0).describe('Cents reserved for operations that are still in progress.'),
    total: z.int().describe('`available` + `held`, in cents.'),
  })
  .meta({ id: 'Balance', description: 'Your prepaid balance in one mode.' });
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

import type { BalanceCents } from '../resources/balance.ts';

/** A balance as this command line gives it (operations.md), in cents. */
export function presentAmounts(balance: BalanceCents): { available: number; held: number; total: number } {
  return { available: balance.availableCents, held: balance.heldCents, total: balance.totalCents };
}

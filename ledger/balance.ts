import type { Balance } from './operation.ts';

/** From PostgreSQL's bigint, which comes as text; the ledger's CHECKs keep it within the safe integers. */
export function balanceOf(posted: string, held: string): Balance {
  const totalCents = Number(posted);
  const heldCents = Number(held);
  return { availableCents: totalCents - heldCents, heldCents, totalCents };
}

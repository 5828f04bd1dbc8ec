/** The largest amount or sum of cents in the service (docs/partners/money-fees-and-limits.md): 2^53 − 1. */
export const MAX_AMOUNT_CENTS = Number.MAX_SAFE_INTEGER;

/** `amountCents` × basis points, rounded half up, exact for every safe integer. */
export function basisPointsOf(amountCents: number, basisPoints: number): number {
  return Number((BigInt(amountCents) * BigInt(basisPoints) + 5_000n) / 10_000n);
}

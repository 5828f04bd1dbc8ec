/** The largest amount or sum of cents in the service (docs/partners/money-fees-and-limits.md): 2^53 − 1. */
export const MAX_AMOUNT_CENTS = Number.MAX_SAFE_INTEGER;

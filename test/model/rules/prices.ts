/** docs/partners/money-fees-and-limits.md. The model's own copy of the rules, so none of the service's code is here. */
export interface Prices {
  activationCents: number;
  fundingBasisPoints: number;
  fundingMinCents: number;
  transactionCents: number;
  transactionBasisPoints: number;
  declineCents: number;
}

export const PLATFORM_PRICES: Prices = {
  activationCents: 100,
  fundingBasisPoints: 200,
  fundingMinCents: 50,
  transactionCents: 10,
  transactionBasisPoints: 50,
  declineCents: 25,
};

export interface Fee {
  type: 'card_activation' | 'card_funding' | 'transaction' | 'decline';
  amount: number;
}

export function fundingFees(prices: Prices, what: 'card' | 'topup', cents: number): Fee[] {
  const funding = Math.max(shareOf(cents, prices.fundingBasisPoints), prices.fundingMinCents);
  return charged([
    { type: 'card_activation', amount: what === 'card' ? prices.activationCents : 0 },
    { type: 'card_funding', amount: funding },
  ]);
}

export function transactionFees(
  prices: Prices,
  type: 'purchase' | 'decline' | 'refund',
  cents: number,
): Fee[] {
  if (type === 'refund') return [];
  if (type === 'decline') return charged([{ type, amount: prices.declineCents }]);
  const amount = prices.transactionCents + shareOf(cents, prices.transactionBasisPoints);
  return charged([{ type: 'transaction', amount }]);
}

export function sumOf(fees: readonly Fee[]): number {
  return fees.reduce((sum, { amount }) => sum + amount, 0);
}

function charged(fees: Fee[]): Fee[] {
  return fees.filter(({ amount }) => amount > 0);
}

/** Rounded half up. Amounts of the model are small enough for the product. */
function shareOf(cents: number, basisPoints: number): number {
  const exact = cents * basisPoints;
  const rest = exact % 10_000;
  return (exact - rest) / 10_000 + (rest >= 5_000 ? 1 : 0);
}

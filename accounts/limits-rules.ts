import { z } from 'zod';
import { ApiError } from '../domain/api-error.ts';
import { MAX_AMOUNT_CENTS } from '../domain/money.ts';

const Cents = z.int().min(1).max(MAX_AMOUNT_CENTS);

/** Limits of an account, counted per mode (docs/partners/money-fees-and-limits.md). */
export const AccountLimits = z.strictObject({
  minCardCents: Cents,
  maxCardCents: Cents,
  maxOpenCards: z.int().min(0).max(1_000_000_000),
  maxIssuedPerDayCents: z.int().min(0).max(MAX_AMOUNT_CENTS),
});
export type AccountLimits = z.infer<typeof AccountLimits>;

/** The platform's limits, for accounts that have none of their own. */
export const DEFAULT_LIMITS: AccountLimits = {
  minCardCents: 100,
  maxCardCents: 1_000_000,
  maxOpenCards: 10_000,
  maxIssuedPerDayCents: 100_000_000,
};

/** What an account has used of its limits in one mode. */
export interface Usage {
  /** Cards that are pending, active or frozen. */
  openCards: number;
  /** Cents loaded by issuance and top-up in the current UTC day, without those that failed. */
  loadedTodayCents: number;
}

/** @throws ApiError `limit_exceeded`, which names the limit and its value. */
export function checkLimits(
  limits: AccountLimits,
  usage: Usage,
  request: { amountCents: number; newCards: 0 | 1 },
): void {
  const { amountCents, newCards } = request;
  if (amountCents < limits.minCardCents)
    throw exceeded(`amount must be at least ${limits.minCardCents} cents`);
  if (amountCents > limits.maxCardCents)
    throw exceeded(`amount must be at most ${limits.maxCardCents} cents`);
  if (newCards > 0 && usage.openCards + newCards > limits.maxOpenCards) {
    throw exceeded(
      `this account can have ${limits.maxOpenCards} open cards and already has ${usage.openCards}`,
    );
  }
  if (usage.loadedTodayCents + amountCents > limits.maxIssuedPerDayCents) {
    throw exceeded(
      `this account can load ${limits.maxIssuedPerDayCents} cents per UTC day and has loaded ${usage.loadedTodayCents} today`,
    );
  }
}

function exceeded(message: string): ApiError {
  return new ApiError('limit_exceeded', {
    message:
      `Limit exceeded: ${message}. Nothing was debited. Once the request fits, use a new Idempotency-Key: the one you used ` +
      'keeps this response.',
  });
}

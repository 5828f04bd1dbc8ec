import { ApiError } from '../../domain/api-error.ts';
import type { Tenant } from '../../domain/mode.ts';
import type { UsageBuckets } from './usage-buckets.ts';

const DAY_MS = 86_400_000;

export interface StorageBudget {
  isUsedUp(account: Tenant): boolean;
  /** @throws ApiError `rate_limited` if the account has used its budget up */
  check(account: Tenant): void;
  /** Counts what a request has stored. */
  add(account: Tenant, bytes: number): void;
}

/**
 * How much the requests of an account can have stored, in each mode: a bucket of `bytesPerDay`, which fills
 * up within a day (docs/partners/money-fees-and-limits.md). A request of 200 bytes can store a thousand times
 * as much: the card is in its event and in the response that its Idempotency-Key keeps.
 * @param bytesPerDay 0 turns the limit off
 */
export function createStorageBudget(
  { bytesPerDay }: { bytesPerDay: number },
  { waitMs, add }: UsageBuckets,
): StorageBudget {
  if (bytesPerDay === 0) return { isUsedUp: () => false, check: () => {}, add: () => {} };
  const use = ({ partnerId, mode }: Tenant, bytes: number) => ({
    bucket: `${partnerId}/${mode}/stored`,
    usedMs: (bytes * DAY_MS) / bytesPerDay,
    sizeMs: DAY_MS,
  });
  return {
    isUsedUp: (account) => waitMs(use(account, 1)) > 0,
    check(account) {
      const wait = waitMs(use(account, 1));
      if (wait === 0) return;
      throw new ApiError('rate_limited', {
        message:
          "This account's requests in this mode have stored as much as they can within a day, and this one was not started. Retry " +
          'after the number of seconds in Retry-After, with the same Idempotency-Key, or contact us.',
        retryAfterSeconds: Math.max(1, Math.ceil(wait / 1_000)),
      });
    },
    add: (account, bytes) => add(use(account, bytes)),
  };
}

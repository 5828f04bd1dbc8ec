import { LRUCache } from 'lru-cache';
import type { KeyUsage } from '../../commands/accounts/key-usage.ts';
import { ApiError } from '../../domain/api-error.ts';

const ROUNDING_MS = 1e-6;

/** The share of a burst that a process lets through before it tells the others, so that a few requests cost no statement. */
const UNREPORTED_PART = 1 / 20;

export interface RateLimit {
  /**
   * Counts a request.
   * @throws ApiError `rate_limited`
   */
  take(keyId: string): void;
  /** Tells the other processes what this one let through, and learns what they did. */
  exchange(share: (usedMs: KeyUsage) => Promise<KeyUsage>): Promise<void>;
}

interface RateLimitOptions {
  /** 0 turns the limit off. */
  perSecond: number;
  /** How many may come at once after a pause; at least `perSecond`. */
  burst: number;
}

interface Bucket {
  /** When the bucket will be full again. */
  fullAtMs: number;
  /** The part that the other processes do not know about yet. */
  unreportedMs: number;
}

/**
 * The general limit (docs/partners/money-fees-and-limits.md), counted per key: the generic cell rate algorithm, a token
 * bucket that keeps one number, the time at which the bucket will be full again. A request never waits for the count:
 * processes exchange their counts afterwards (docs/decisions/rate-limit-across-processes.md).
 * @param now milliseconds of a monotonic clock
 */
export function createRateLimit(
  { perSecond, burst }: RateLimitOptions,
  now: () => number = () => performance.now(),
): RateLimit {
  if (perSecond === 0) return { take: () => {}, exchange: async () => {} };
  const intervalMs = 1_000 / perSecond;
  const sizeMs = Math.max(burst, perSecond) * intervalMs;
  const reportedFromMs = Math.max(intervalMs, sizeMs * UNREPORTED_PART) - ROUNDING_MS;
  const buckets = new LRUCache<string, Bucket>({ max: 100_000 });
  const toReport = new Set<string>();
  const message =
    `This API key can send ${perSecond} requests a second, and ${Math.max(burst, perSecond)} at once after a pause. ` +
    'Retry after the number of seconds in Retry-After, with the same Idempotency-Key.';

  return {
    take(keyId) {
      const nowMs = now();
      const bucket = buckets.get(keyId) ?? { fullAtMs: nowMs, unreportedMs: 0 };
      const fullAtMs = Math.max(bucket.fullAtMs, nowMs) + intervalMs;
      const waitMs = fullAtMs - nowMs - sizeMs;
      // Rounding errors in sums of fractional milliseconds stay below this.
      if (waitMs > ROUNDING_MS) {
        throw new ApiError('rate_limited', {
          message,
          retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1_000)),
        });
      }
      bucket.fullAtMs = fullAtMs;
      bucket.unreportedMs += intervalMs;
      buckets.set(keyId, bucket);
      if (bucket.unreportedMs >= reportedFromMs) toReport.add(keyId);
    },

    async exchange(share) {
      const usedMs = new Map([...toReport].map((keyId) => [keyId, buckets.get(keyId)?.unreportedMs ?? 0]));
      if (usedMs.size === 0) return;
      // If this fails, the keys stay in `toTell` for the next exchange.
      for (const [keyId, fullInMs] of await share(usedMs)) {
        toReport.delete(keyId);
        const bucket = buckets.get(keyId);
        if (bucket === undefined) continue;
        bucket.unreportedMs -= usedMs.get(keyId) ?? 0;
        bucket.fullAtMs = Math.max(bucket.fullAtMs, now() + fullInMs + bucket.unreportedMs);
      }
    },
  };
}

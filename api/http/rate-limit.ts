import { LRUCache } from 'lru-cache';
import { ApiError } from '../../domain/api-error.ts';

const ROUNDING_MS = 1e-6;

/** @throws ApiError `rate_limited` */
export type RateLimit = (keyId: string) => void;

export interface RateLimitOptions {
  /** 0 turns the limit off. */
  perSecond: number;
  /** How many may come at once after a pause; never fewer than in one second. */
  burst: number;
}

/**
 * The general limit (decisions.md, "Reveal limit …"), counted per key in this process: the generic cell rate algorithm,
 * a token bucket that keeps one number, the time at which the bucket will be full again.
 * @param now milliseconds of a clock that never goes back
 */
export function createRateLimit(
  { perSecond, burst }: RateLimitOptions,
  now: () => number = () => performance.now(),
): RateLimit {
  if (perSecond === 0) return () => {};
  const intervalMs = 1_000 / perSecond;
  const sizeMs = Math.max(burst, perSecond) * intervalMs;
  const fullAgain = new LRUCache<string, number>({ max: 100_000 });
  return (keyId) => {
    const nowMs = now();
    const fullMs = Math.max(fullAgain.get(keyId) ?? 0, nowMs) + intervalMs;
    const waitMs = fullMs - nowMs - sizeMs;
    // Sums of fractions of a millisecond are off by less than this.
    if (waitMs > ROUNDING_MS) {
      throw new ApiError('rate_limited', { retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1_000)) });
    }
    fullAgain.set(keyId, fullMs);
  };
}

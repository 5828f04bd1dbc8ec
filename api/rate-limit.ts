import { BurstyRateLimiter, RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { ApiError } from '../domain/api-error.ts';

export type RateLimit = (keyId: string) => Promise<void>;

/**
 * The general limit (decisions.md, "Reveal limit …"): so many requests a second per key, and a burst above it that
 * refills at the same rate. Counted in this process. 0 a second turns it off.
 * @throws ApiError `rate_limited`
 */
export function createRateLimit(options: { perSecond: number; burst: number }): RateLimit {
  const { perSecond, burst } = options;
  if (perSecond === 0) return async () => {};
  const steady = new RateLimiterMemory({ points: perSecond, duration: 1 });
  const extra = Math.max(burst - perSecond, 0);
  const limiter =
    extra === 0
      ? steady
      : new BurstyRateLimiter(
          steady,
          new RateLimiterMemory({
            keyPrefix: 'burst',
            points: extra,
            duration: Math.ceil(extra / perSecond),
          }),
        );
  return async (keyId) => {
    try {
      await limiter.consume(keyId);
    } catch (refused) {
      if (!(refused instanceof RateLimiterRes)) throw refused;
      throw new ApiError('rate_limited', {
        retryAfterSeconds: Math.max(1, Math.ceil(refused.msBeforeNext / 1_000)),
      });
    }
  };
}

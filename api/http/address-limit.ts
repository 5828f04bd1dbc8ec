import { ApiError } from '../../domain/api-error.ts';
import { limitedAddress } from '../../domain/ip-address.ts';
import type { UsageBuckets } from './usage-buckets.ts';

const MINUTE_MS = 60_000;

/**
 * Counts a request that needs no key, by its address, in all processes together.
 * @param what names the limit
 * @throws ApiError `rate_limited`
 */
export function limitAddress(
  { waitMs, add }: Pick<UsageBuckets, 'waitMs' | 'add'>,
  what: string,
  clientAddress: string | null,
  perMinute: number,
): void {
  const bucket = `${what}/${limitedAddress(clientAddress)}`;
  const use = { bucket, usedMs: MINUTE_MS / perMinute, sizeMs: MINUTE_MS };
  const wait = waitMs(use);
  if (wait > 0) {
    throw new ApiError('rate_limited', {
      message: `An address can do this ${perMinute} times in a minute. Try again after the number of seconds in Retry-After.`,
      retryAfterSeconds: Math.ceil(wait / 1_000),
    });
  }
  add(use);
}

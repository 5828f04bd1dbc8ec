import { ApiError } from '../../domain/api-error.ts';
import type { Caller } from './authenticate.ts';
import type { UsageBuckets } from './usage-buckets.ts';

/**
 * How many keys an account can use fully at the same time in each mode. An account makes keys itself, so
 * without a limit of its own it could send fifty times as much as with one.
 */
const FULL_KEYS = 2;

/** Rounding errors in sums of fractional milliseconds stay below this. */
const ROUNDING_MS = 1e-3;

type KeyOfAccount = Pick<Caller, 'keyId' | 'partnerId' | 'mode'>;

export interface RateLimit {
  /**
   * Counts a request.
   * @throws ApiError `rate_limited`
   */
  take(caller: KeyOfAccount): void;
  /**
   * What a response says about the limits (docs/partners/errors.md), in the fields of
   * draft-ietf-httpapi-ratelimit-headers; nothing if there are none.
   */
  headers(caller: KeyOfAccount): Record<string, string>;
}

interface RateLimitOptions {
  /** 0 turns the limit off. */
  perSecond: number;
  /** How many may come at once after a pause; at least `perSecond`. */
  burst: number;
}

/**
 * The general limit (docs/partners/money-fees-and-limits.md): of a key, and of all keys of an account and
 * mode together.
 */
export function createRateLimit(
  { perSecond, burst }: RateLimitOptions,
  { waitMs, add }: UsageBuckets,
): RateLimit {
  if (perSecond === 0) return { take: () => {}, headers: () => ({}) };
  const limits = [
    limitOf('key', 'This API key', perSecond, burst),
    limitOf(
      'account',
      "This account's API keys of this mode together",
      perSecond * FULL_KEYS,
      burst * FULL_KEYS,
    ),
  ] as const;
  const usesOf = ({ keyId, partnerId, mode }: KeyOfAccount) => [
    { ...limits[0], bucket: keyId },
    { ...limits[1], bucket: `${partnerId}/${mode}` },
  ];
  const policy = limits.map(({ name, size, sizeMs }) => `"${name}";q=${size};w=${inSeconds(sizeMs)}`);

  return {
    take(caller) {
      const uses = usesOf(caller);
      // What one bucket refuses is not taken from the other.
      for (const use of uses) {
        const wait = waitMs(use);
        if (wait > 0) {
          throw new ApiError('rate_limited', { message: use.message, retryAfterSeconds: inSeconds(wait) });
        }
      }
      for (const use of uses) add(use);
    },

    headers(caller) {
      const left = usesOf(caller).map((use) => {
        const { name, size, usedMs, sizeMs } = use;
        const usedUpMs = waitMs({ ...use, usedMs: sizeMs });
        const requests = Math.max(0, size - Math.ceil((usedUpMs - ROUNDING_MS) / usedMs));
        return `"${name}";r=${requests};t=${inSeconds(usedUpMs - (size - requests - 1) * usedMs)}`;
      });
      return { 'RateLimit-Policy': policy.join(', '), RateLimit: left.join(', ') };
    },
  };
}

const inSeconds = (ms: number) => Math.max(1, Math.ceil((ms - ROUNDING_MS) / 1_000));

function limitOf(name: string, who: string, perSecond: number, burst: number) {
  const size = Math.max(burst, perSecond);
  return {
    name,
    size,
    usedMs: 1_000 / perSecond,
    sizeMs: (size * 1_000) / perSecond,
    message:
      `${who} can send ${perSecond} requests a second, and ${size} at once after a pause. ` +
      'Retry after the number of seconds in Retry-After, with the same Idempotency-Key.',
  };
}

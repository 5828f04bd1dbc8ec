import { LRUCache } from 'lru-cache';
import type { BucketUsage } from '../../accounts/usage.ts';

/** Rounding errors in sums of fractional milliseconds stay below this. */
const ROUNDING_MS = 1e-6;

/**
 * The share of a bucket that a process uses before it tells the others, so that a little use costs no
 * statement.
 */
const UNREPORTED_PART = 1 / 20;

/** What is used is counted in milliseconds: how much longer the bucket then needs to be full again. */
export interface Use {
  bucket: string;
  usedMs: number;
  /** How long an empty bucket needs to be full again. */
  sizeMs: number;
}

export interface UsageBuckets {
  /** How long until the bucket has this much; 0 if it has now. */
  waitMs(use: Use): number;
  add(use: Use): void;
  /** Tells the other processes what was used here, and learns what was used there. */
  exchange(share: (usedMs: BucketUsage) => Promise<BucketUsage>): Promise<void>;
}

interface Bucket {
  /** When the bucket will be full again. */
  fullAtMs: number;
  /** The part that the other processes do not know about yet. */
  unreportedMs: number;
}

/**
 * Token buckets that all processes share. Each keeps one number, the time at which it will be full again (the
 * generic cell rate algorithm). Nothing waits for the count: processes exchange their counts afterwards
 * (docs/decisions/rate-limit-across-processes.md).
 * @param now milliseconds of a monotonic clock
 */
export function createUsageBuckets(now: () => number = () => performance.now()): UsageBuckets {
  // With `max`, it would be allocated as a whole.
  const buckets = new LRUCache<string, Bucket>({ maxSize: 200_000, sizeCalculation: () => 1 });
  const toReport = new Set<string>();

  return {
    waitMs({ bucket, usedMs, sizeMs }) {
      const nowMs = now();
      const waitMs = Math.max(buckets.get(bucket)?.fullAtMs ?? nowMs, nowMs) + usedMs - nowMs - sizeMs;
      return waitMs > ROUNDING_MS ? waitMs : 0;
    },

    add({ bucket: name, usedMs, sizeMs }) {
      const nowMs = now();
      const bucket = buckets.get(name) ?? { fullAtMs: nowMs, unreportedMs: 0 };
      bucket.fullAtMs = Math.max(bucket.fullAtMs, nowMs) + usedMs;
      bucket.unreportedMs += usedMs;
      buckets.set(name, bucket);
      if (bucket.unreportedMs >= Math.max(usedMs, sizeMs * UNREPORTED_PART) - ROUNDING_MS) toReport.add(name);
    },

    async exchange(share) {
      const usedMs = new Map([...toReport].map((name) => [name, buckets.get(name)?.unreportedMs ?? 0]));
      if (usedMs.size === 0) return;
      // If this fails, the buckets stay in `toReport` for the next exchange.
      for (const [name, fullInMs] of await share(usedMs)) {
        toReport.delete(name);
        const bucket = buckets.get(name);
        if (bucket === undefined) continue;
        bucket.unreportedMs -= usedMs.get(name) ?? 0;
        bucket.fullAtMs = Math.max(bucket.fullAtMs, now() + fullInMs + bucket.unreportedMs);
      }
    },
  };
}

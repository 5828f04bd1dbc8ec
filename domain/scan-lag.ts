// Separate from deposit.ts because a workflow imports it: each workflow evaluates its imports anew.

/** How far the scan is behind the chain; null if that is not known. */
export interface ScanLag {
  seconds: number | null;
  blocks: number | null;
}

/** Operators get to see a lag that is longer than this. */
export const MAX_LAG_SECONDS = 60;

/** A block is solid about 57 s after it was produced; no scan can take it earlier. */
const SOLID_AFTER_SECONDS = 60;
/** TRON's block time. */
const SECONDS_PER_BLOCK = 3;

/**
 * How far behind the last block taken is. Right after a rescan was requested, that block's time is not known,
 * so it is estimated from the number of blocks after it.
 */
export function scanLag(
  scan: { blockNumber: number; blockTime: Date | null; solidBlockNumber: number | null },
  now = new Date(),
): ScanLag {
  const { blockNumber, blockTime, solidBlockNumber } = scan;
  const blocks = solidBlockNumber === null ? null : Math.max(0, solidBlockNumber - blockNumber);
  if (blockTime === null) return { seconds: blocks === null ? null : blocks * SECONDS_PER_BLOCK, blocks };
  const ageSeconds = Math.floor((now.getTime() - blockTime.getTime()) / 1_000);
  return { seconds: Math.max(0, ageSeconds - SOLID_AFTER_SECONDS), blocks };
}

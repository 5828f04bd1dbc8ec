// Apart from deposit.ts, since a workflow imports it: what a workflow imports is evaluated anew for each one.

/** How far the reading of a chain is behind it; null where that is not known. */
export interface ScanLag {
  seconds: number | null;
  blocks: number | null;
}

/** A lag of more seconds than this is told to operators. */
export const LONGEST_LAG_SECONDS = 60;

/** A block is solid about 57 s after it was made: up to then nobody can have taken it. */
const SOLID_AFTER_SECONDS = 60;
/** Of TRON. */
const SECONDS_PER_BLOCK = 3;

/**
 * How far behind the last block that was taken is. Right after a rescan was asked for its time is not known; then it is as
 * old as the blocks after it make it.
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

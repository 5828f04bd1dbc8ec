/**
 * How much of its calls, rows and rounds a measurement does: a test has all of them run, with a few calls
 * each.
 */
const SCALE = Number(process.env.BENCH_SCALE || 1);

/** @returns at least 1 */
export const scaled = (count: number): number => Math.max(1, Math.ceil(count * SCALE));

/** The machine's monotonic clock: the same in all its processes, and nobody sets it. */
export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6;

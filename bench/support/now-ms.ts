/** The wall clock, finer than a millisecond: to be compared between processes. */
export const nowMs = (): number => performance.timeOrigin + performance.now();

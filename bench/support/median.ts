import type { Measurement } from './measure.ts';

/** The middle of several rounds, figure by figure. */
export function median(measurements: Measurement[]): Measurement {
  const middle = (of: (measurement: Measurement) => number) =>
    measurements.map(of).sort((a, b) => a - b)[Math.floor(measurements.length / 2)] ?? 0;
  return {
    perSecond: middle((m) => m.perSecond),
    p50Ms: middle((m) => m.p50Ms),
    p99Ms: middle((m) => m.p99Ms),
  };
}

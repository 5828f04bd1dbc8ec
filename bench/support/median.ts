import type { Measurement } from './measure.ts';

/** The middle of several rounds, figure by figure. */
export function median(measurements: Measurement[]): Measurement {
  const middle = (of: (measurement: Measurement) => number) => middleOf(measurements.map(of));
  return {
    perSecond: middle((m) => m.perSecond),
    p50Ms: middle((m) => m.p50Ms),
    p99Ms: middle((m) => m.p99Ms),
  };
}

export function middleOf(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

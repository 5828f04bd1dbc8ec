import { readFile } from 'node:fs/promises';

export interface Measurement {
  perSecond: number;
  p50Ms: number;
  p99Ms: number;
}

/** Calls `work` `count` times, `inFlight` at once, after a warm-up of a tenth as many calls. */
export async function measure(
  count: number,
  inFlight: number,
  work: () => Promise<void>,
): Promise<Measurement> {
  await drive(Math.ceil(count / 10), inFlight, work);
  const startedAt = performance.now();
  const durationsMs = await drive(count, inFlight, work);
  const seconds = (performance.now() - startedAt) / 1_000;
  return { perSecond: count / seconds, ...summarize(durationsMs) };
}

export function summarize(durationsMs: readonly number[]): { p50Ms: number; p99Ms: number } {
  const sorted = durationsMs.toSorted((a, b) => a - b);
  const quantile = (q: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? 0;
  return { p50Ms: quantile(0.5), p99Ms: quantile(0.99) };
}

async function drive(count: number, inFlight: number, work: () => Promise<void>): Promise<number[]> {
  const durationsMs: number[] = [];
  let left = count;
  const turns = Array.from({ length: inFlight }, async () => {
    while (left-- > 0) {
      const startedAt = performance.now();
      await work();
      durationsMs.push(performance.now() - startedAt);
    }
  });
  await Promise.all(turns);
  return durationsMs;
}

export function describe(name: string, { perSecond, p50Ms, p99Ms }: Measurement): string {
  const figures = [`${perSecond.toFixed(0)}/s`, `p50 ${p50Ms.toFixed(2)} ms`, `p99 ${p99Ms.toFixed(2)} ms`];
  return `${name.padEnd(44)} ${figures.map((figure) => figure.padStart(16)).join('')}`;
}

/**
 * Measures several works in turn, round after round, so that other work of the machine affects all alike.
 * @returns the rounds of each
 */
export async function measureInTurn<Name extends string>(
  works: Record<Name, () => Promise<void>>,
  { rounds, count, inFlight }: { rounds: number; count: number; inFlight: number },
): Promise<Record<Name, Measurement[]>> {
  const names = Object.keys(works) as Name[];
  const measured = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<
    Name,
    Measurement[]
  >;
  for (let round = 0; round < rounds; round++) {
    for (const name of names) measured[name].push(await measure(count, inFlight, works[name]));
  }
  return measured;
}

/** How many times the floor ours is. Each round is compared by itself, and the median is printed. */
export function printedRatio(ours: Measurement[], floor: Measurement[], figure: keyof Measurement): string {
  return medianNumber(ours.map((round, index) => round[figure] / (floor[index]?.[figure] ?? 0))).toFixed(2);
}

/** The median of several rounds, figure by figure. */
export function median(measurements: Measurement[]): Measurement {
  const middle = (of: (measurement: Measurement) => number) => medianNumber(measurements.map(of));
  return {
    perSecond: middle((m) => m.perSecond),
    p50Ms: middle((m) => m.p50Ms),
    p99Ms: middle((m) => m.p99Ms),
  };
}

export function medianNumber(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** The machine's monotonic clock, in milliseconds: the same in all its processes, and never set. */
export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6;

const TICKS_PER_SECOND = 100;

/**
 * The processor time that all threads of a process have used so far, in seconds; NaN if there is no /proc.
 */
export async function readCpuSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return '';
  });
  // The fields after the name, which is in parentheses and can contain spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11] ?? Number.NaN) + Number(fields[12] ?? Number.NaN)) / TICKS_PER_SECOND;
}

/** The memory of a process that is not paged out, in MB; NaN if there is no /proc. */
export const readResidentMb = (pid: number): Promise<number> => readStatusMb(String(pid), 'VmRSS');

/** The most that this process has had of it so far, in MB. */
export async function readPeakMb(): Promise<number> {
  const peakMb = await readStatusMb('self', 'VmHWM');
  // On Linux this would include what the process had that started this one.
  return Number.isNaN(peakMb) ? process.resourceUsage().maxRSS / 1_024 : peakMb;
}

async function readStatusMb(pid: string, field: 'VmRSS' | 'VmHWM'): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return '';
  });
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? Number.NaN) / 1_024;
}

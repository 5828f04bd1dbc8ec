import type { Difference } from '../model/difference.ts';
import { operationsOf, type Tally } from '../model/tally.ts';
import { type Kill, VICTIMS, type Victim } from './draw-kills.ts';

export interface Report {
  seed: number;
  seconds: number;
  /** Accepted or refused, each counted once, however often it was sent. */
  operations: { total: number; byKind: Record<string, number> };
  kills: Record<Victim, { kills: number; medianRecoveryMs: number | null; longestRecoveryMs: number | null }>;
  /** How often the API answered each status; `none` is a broken connection. */
  answers: Record<string, number>;
  webhooks: { events: number; requests: number };
  differences: { what: string; details: string[] }[];
}

interface Run {
  seed: number;
  startedAt: number;
  tally: Tally;
  kills: readonly Kill[];
  answers: ReadonlyMap<string, number>;
  webhooks: Report['webhooks'];
  differences: readonly Difference[];
}

export function makeReport({ seed, startedAt, tally, kills, answers, webhooks, differences }: Run): Report {
  const byKind = new Map<string, number>();
  for (const [what, times] of tally.asked) {
    const kind = what.split(' ').slice(0, 2).join(' ');
    byKind.set(kind, (byKind.get(kind) ?? 0) + times);
  }
  return {
    seed,
    seconds: Math.round((Date.now() - startedAt) / 1_000),
    operations: { total: operationsOf(tally), byKind: sorted(byKind) },
    kills: Object.fromEntries(
      VICTIMS.map((victim) => [victim, readRecoveries(kills.filter((kill) => kill.victim === victim))]),
    ) as Report['kills'],
    answers: sorted(answers),
    webhooks,
    differences: differences.map(({ message }) => {
      const [what = '', ...details] = message.split('\n');
      return { what, details: details.map((line) => line.trim()) };
    }),
  };
}

function readRecoveries(kills: readonly Kill[]): Report['kills'][Victim] {
  const recovered = kills
    .flatMap(({ recoveredAfterMs }) => recoveredAfterMs ?? [])
    .sort((left, right) => left - right);
  return {
    kills: kills.length,
    medianRecoveryMs: recovered[Math.floor(recovered.length / 2)] ?? null,
    longestRecoveryMs: recovered.at(-1) ?? null,
  };
}

/** The report as text for people. */
export function describeReport({ operations, kills, answers, webhooks, ...report }: Report): string {
  const lines = (counts: Record<string, number>) =>
    Object.entries(counts).map(([what, times]) => `${String(times).padStart(8)}  ${what}`);
  const all = Object.values(kills).reduce((sum, one) => sum + one.kills, 0);
  const seconds = (ms: number | null) => (ms === null ? '-' : `${(ms / 1_000).toFixed(1)} s`);
  return [
    `seed ${report.seed}, ${report.seconds} s`,
    `operations: ${operations.total}`,
    ...lines(operations.byKind),
    `kills -9: ${all}`,
    ...VICTIMS.map((victim) => {
      const { kills: times, medianRecoveryMs, longestRecoveryMs } = kills[victim];
      const back = `back after ${seconds(medianRecoveryMs)} (median), ${seconds(longestRecoveryMs)} (longest)`;
      return `${String(times).padStart(8)}  ${victim}: ${back}`;
    }),
    'answers of the API',
    ...lines(answers),
    `webhooks: ${webhooks.events} events accepted, ${webhooks.requests} requests`,
    `differences: ${report.differences.length}`,
    ...report.differences.flatMap(({ what, details }) => [
      `  ${what}`,
      ...details.map((line) => `    ${line}`),
    ]),
  ].join('\n');
}

function sorted(counts: ReadonlyMap<string, number>): Record<string, number> {
  return Object.fromEntries([...counts].sort(([left], [right]) => (left < right ? -1 : 1)));
}

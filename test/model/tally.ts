/** What a run did. Without it, a run that has lost its hard cases would pass like any other. */
export interface Tally {
  asked: Map<string, number>;
  /** The number of results that no answer shows. */
  seen: Map<string, number>;
}

export const newTally = (): Tally => ({ asked: new Map(), seen: new Map() });

export function count(counts: Map<string, number>, what: string): void {
  counts.set(what, (counts.get(what) ?? 0) + 1);
}

export function operationsOf({ asked }: Tally): number {
  return [...asked.values()].reduce((sum, one) => sum + one, 0);
}

export function describeTally({ asked, seen }: Tally): string {
  const lines = [...asked, ...seen].map(([what, times]) => `${String(times).padStart(7)} ${what}`);
  return lines.sort((a, b) => (a.slice(8) < b.slice(8) ? -1 : 1)).join('\n');
}

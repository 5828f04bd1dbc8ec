/** What a run did: without it a test that no longer asks the hard questions would pass like any other. */
export interface Tally {
  /** What was asked and answered, by mode, kind and outcome. */
  asked: Map<string, number>;
  /** What became of it, where the answer does not tell. */
  seen: Map<string, number>;
}

export const newTally = (): Tally => ({ asked: new Map(), seen: new Map() });

export function count(counts: Map<string, number>, what: string): void {
  counts.set(what, (counts.get(what) ?? 0) + 1);
}

export function operationsOf({ asked }: Tally): number {
  return [...asked.values()].reduce((sum, one) => sum + one, 0);
}

/** A line for each, for people. */
export function describeTally({ asked, seen }: Tally): string {
  const lines = [...asked, ...seen].map(([what, times]) => `${String(times).padStart(7)} ${what}`);
  return lines.sort((a, b) => (a.slice(8) < b.slice(8) ? -1 : 1)).join('\n');
}

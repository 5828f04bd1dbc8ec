import fc from 'fast-check';

export const VICTIMS = ['API', 'worker', 'Temporal', 'PostgreSQL'] as const;
export type Victim = (typeof VICTIMS)[number];

export interface Kill {
  victim: Victim;
  /** From the kill until the supervisor saw that it works again; undefined until then. */
  recoveredAfterMs: number | undefined;
}

/** Every four kills hit all four processes, in any order. */
const turns = fc.shuffledSubarray([...VICTIMS], { minLength: VICTIMS.length });
const pauseMs = fc.noBias(fc.integer({ min: 300, max: 3_000 }));

/** Which processes are killed, and how long after the kill before. The same for the same seed. */
export function drawKills(seed: number, count: number): { victim: Victim; pauseMs: number }[] {
  const rounds = fc.sample(turns, { seed, numRuns: Math.ceil(count / VICTIMS.length) });
  const pauses = fc.sample(pauseMs, { seed, numRuns: count });
  return pauses.map((pause, index) => ({ victim: rounds.flat()[index] as Victim, pauseMs: pause }));
}

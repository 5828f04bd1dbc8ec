import { setTimeout as sleep } from 'node:timers/promises';

const waits = new Map<symbol, () => string>();

export const waitingFor = (): string[] => [...waits.values()].map((what) => what());

/** Ends the waits of tests that ran into mocha's limit, which is the only one. */
export const stopWaiting = (): void => waits.clear();

/** Polls until the answer is not undefined, null or false. Mocha's limit ends it, and its message then names `what`. */
export async function until<T>(
  what: string | (() => string),
  ask: () => T | undefined | null | false | Promise<T | undefined | null | false>,
): Promise<T> {
  const wait = Symbol('wait');
  const describe = typeof what === 'string' ? () => what : what;
  waits.set(wait, describe);
  try {
    for (let pauseMs = 5; ; pauseMs = Math.min(2 * pauseMs, 100)) {
      const answer = await ask();
      if (answer !== undefined && answer !== null && answer !== false) return answer;
      if (!waits.has(wait)) throw new Error(`the test ended before this: ${describe()}`);
      await sleep(pauseMs);
    }
  } finally {
    waits.delete(wait);
  }
}

export async function untilHolds(assertion: () => void | Promise<void>): Promise<void> {
  let failure: unknown;
  await until(
    () => `an assertion holds, which fails with ${failure}`,
    async () => {
      try {
        await assertion();
        return true;
      } catch (error) {
        failure = error;
        return false;
      }
    },
  );
}

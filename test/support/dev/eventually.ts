import { setTimeout as delay } from 'node:timers/promises';

/** Asks until the answer is there; the test's own time limit ends it. */
export async function eventually<T>(
  ask: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    await delay(50);
  }
}

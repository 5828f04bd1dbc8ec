import { setTimeout as sleep } from 'node:timers/promises';

/** Far longer than anything here takes, even on a busy machine. */
export const LONGEST_MS = 240_000;

/**
 * Polls until the answer is not undefined, null or false.
 * @throws Error naming `what` after four minutes
 */
export async function until<T>(
  what: string,
  ask: () => T | undefined | null | false | Promise<T | undefined | null | false>,
): Promise<T> {
  const giveUpAt = Date.now() + LONGEST_MS;
  for (let pauseMs = 5; ; pauseMs = Math.min(2 * pauseMs, 100)) {
    const answer = await ask();
    if (answer !== undefined && answer !== null && answer !== false) return answer;
    if (Date.now() > giveUpAt) throw new Error(`${LONGEST_MS / 1_000} s were not enough: ${what}`);
    await sleep(pauseMs);
  }
}

/** Repeats an assertion until it holds. @throws the assertion's own error after a minute */
export async function untilHolds(assertion: () => void | Promise<void>): Promise<void> {
  const giveUpAt = Date.now() + 60_000;
  await until('the assertion holds', async () => {
    try {
      await assertion();
      return true;
    } catch (error) {
      if (Date.now() > giveUpAt) throw error;
      return false;
    }
  });
}

import { setTimeout as sleep } from 'node:timers/promises';

export const LONGEST_MS = 240_000;

/**
 * Asks until there is an answer other than undefined, null or false.
 * @throws Error naming `what` after four minutes: far more than anything here takes, also on a busy machine.
 */
export async function until<T>(what: string, ask: () => Promise<T | undefined | null | false>): Promise<T> {
  const giveUpAt = Date.now() + LONGEST_MS;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== null && answer !== false) return answer;
    if (Date.now() > giveUpAt) throw new Error(`${LONGEST_MS / 1_000} s were not enough: ${what}`);
    await sleep(100);
  }
}

import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Asks until there is an answer other than undefined, null or false.
 * @throws Error naming `what` after 90 s: far more than anything here takes.
 */
export async function until<T>(what: string, ask: () => Promise<T | undefined | null | false>): Promise<T> {
  const giveUpAt = Date.now() + 90_000;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== null && answer !== false) return answer;
    if (Date.now() > giveUpAt) throw new Error(`90 s were not enough: ${what}`);
    await sleep(100);
  }
}

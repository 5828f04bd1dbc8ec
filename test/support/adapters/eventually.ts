import { setTimeout as sleep } from 'node:timers/promises';

/** Tries an assertion until it holds; after 20 s its own failure is the test's. */
export async function eventually(assertion: () => void | Promise<void>): Promise<void> {
  const giveUpAt = Date.now() + 20_000;
  for (;;) {
    try {
      return await assertion();
    } catch (error) {
      if (Date.now() > giveUpAt) throw error;
      await sleep(50);
    }
  }
}

import { startTestStack, type TestStack } from './stack.ts';

let stack: Promise<TestStack> | undefined;

/**
 * One stack for all files that change nothing of it but through partners of their own. Its live mode's network is the
 * simulated one, and there is no rate limit.
 */
export function sharedStack(): Promise<TestStack> {
  // Long, because a hundred simultaneous requests take a while on a busy machine.
  stack ??= startTestStack({ cardCreationWaitMs: 30_000 });
  return stack;
}

// Loaded outside any describe, so it runs after the last file. A worker of a run in parallel has a last file only when it
// ends, and its stack ends with it.
if (process.env.MOCHA_WORKER_ID === undefined) after(async () => (await stack)?.stop());

import { TEST_TRON } from './deposits/seed-deposits.ts';
import { startTestStack, type TestStack } from './stack.ts';

const DEADLINE_MS = 6_000;
const VARIANTS = {
  /** API and worker. No webhook is sent twice because the machine is slow. */
  full: () => startTestStack({ webhookTimeoutMs: 60_000 }),
  /** An API without a worker, which gives out deposit addresses: for test mode, lists and refusals. Live operations stay pending. */
  api: () => startTestStack({ tron: TEST_TRON }, { worker: false }),
  /** API and worker; a live operation is past its deadline after six seconds. */
  deadlines: () =>
    startTestStack({
      issuanceDeadlineMs: DEADLINE_MS,
      topUpDeadlineMs: DEADLINE_MS,
      withdrawalDeadlineMs: DEADLINE_MS,
    }),
};

const stacks = new Map<keyof typeof VARIANTS, Promise<TestStack>>();

/**
 * One stack for all files of a process that change nothing of it but through partners of their own. Its live mode's network
 * is the simulated one, and there is no rate limit. It runs until the process ends, as it costs more to start than to keep.
 */
export async function sharedStack(variant: keyof typeof VARIANTS = 'full'): Promise<TestStack> {
  const stack = stacks.get(variant) ?? VARIANTS[variant]();
  stacks.set(variant, stack);
  // A file answers for what it has made itself.
  return { ...(await stack), startedAt: new Date() };
}

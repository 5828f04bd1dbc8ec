import { startTestStack, type TestStack } from '../stack.ts';
import { type UnrulyNetwork, unrulyNetwork } from './unruly-network.ts';

/** The service with a worker whose network treats its status changes as a test says. */
export async function startUnrulyStack(
  cardCreationWaitMs: number,
): Promise<{ stack: TestStack; network: UnrulyNetwork }> {
  const network = unrulyNetwork();
  const stack = await startTestStack({ cardCreationWaitMs }, { worker: false });
  await stack.startWorker(network.options);
  return { stack, network };
}

import { creditPayments, findUncredited } from '../../../deposits/credit-payments.ts';
import { expireDeposits, findUnpaid } from '../../../deposits/expire.ts';
import { createScanChainActivities, scanOnce } from '../../../deposits/scan-activities.ts';
import { createTronChain } from '../../../deposits/tron/create-tron-chain.ts';
import type { Orm } from '../../../platform/db/orm.ts';
import { untilAborted } from '../../../platform/process/work-context.ts';
import { keptLog } from '../adapters/chain-of-nodes.ts';
import { asOwner } from '../postgres.ts';
import { startTestStack, type TestStack } from '../stack.ts';
import { type DepositStack, newChain, startNodes, tronConfigOf } from './deposit-stack.ts';
import { TEST_TRON_OF_FAKES } from './seed-deposits.ts';

/** So that a node that failed is asked again at the next look, and what nodes said counts until then. */
const NO_PAUSES = {
  ...{ requestTimeoutMs: 60_000, patienceMs: 600_000, runMs: 60_000, overdueMs: 0, checkEveryMs: 0 },
  ...{ confirmationMs: 60_000, rememberedMs: 600_000, firstBackoffMs: 0, maxBackoffMs: 0, recoveryMs: 0 },
};

/** An API that gives out addresses, for the chains of {@link startScannedChain}. */
export const startAddressStack = (): Promise<TestStack> =>
  startTestStack({ tron: TEST_TRON_OF_FAKES }, { worker: false });

/** Replaces the chain that was scanned before, if any. Stopping it leaves the stack running. */
export async function startScannedChain(
  stack: TestStack,
  { names = ['one'], chain = newChain() }: { names?: readonly string[]; chain?: DepositStack['chain'] } = {},
) {
  await asOwner(stack.config.databaseUrl, 'DELETE FROM unconfirmed_payment');
  await asOwner(stack.config.databaseUrl, 'DELETE FROM chain_scan');
  const nodes = await startNodes(chain, names);
  const { orm } = stack;
  const { log, logger } = keptLog();
  const tron = createTronChain(tronConfigOf(nodes), logger, NO_PAUSES);
  const dependencies = { orm, logger, changed: () => {}, report: () => {} };
  return {
    ...{ stack, chain, nodes, log },
    /** A round as a worker makes it, which waits for new blocks until `over` is aborted, or `stopping`. */
    round: async (over: AbortSignal, stopping: AbortSignal) => {
      const activities = createScanChainActivities({
        ...dependencies,
        tron: { network: 'private', scanIntervalMs: 60_000, chain: tron },
        stopping,
      });
      await untilAborted(over, () => activities.scanBlocks('private')).catch(() => {});
    },
    /** Takes every solid block there is, and judges what is due. */
    look: async () => {
      const report = await scanOnce({
        ...dependencies,
        tron: { network: 'private', scanIntervalMs: 1, chain: tron },
        stopping: new AbortController().signal,
      });
      await judgeAll(orm);
      return report;
    },
    stop: async () => {
      tron.close();
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
}

/** A chain whose scan, crediting and expiry take a step when the test says so. */
export type ScannedChain = Awaited<ReturnType<typeof startScannedChain>>;

const ANY_ACCOUNTS = { after: null, except: [], limit: 10 };

async function judgeAll(orm: Orm): Promise<void> {
  for (;;) {
    const uncredited = await findUncredited(orm.em.fork(), ANY_ACCOUNTS);
    const unpaid = await findUnpaid(orm.em.fork(), ANY_ACCOUNTS);
    if (uncredited.length + unpaid.length === 0) return;
    for (const { depositIds } of uncredited) await creditPayments(orm, depositIds);
    for (const account of unpaid) await expireDeposits(orm, account);
  }
}

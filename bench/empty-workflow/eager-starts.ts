import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode } from '@temporalio/worker';
import { pino } from 'pino';
import { startLiveNetwork } from '../../issuers/live-network.ts';
import { UNLIMITED } from '../../issuers/request-budget.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { API_ROLE } from '../../platform/db/login.ts';
import { openServiceDatabase } from '../../platform/db/orm.ts';
import { startEagerWorker } from '../../platform/temporal/eager-worker.ts';
import type { BenchService } from '../support/service.ts';

const CARD = { productCode: 'BENCH', bin: '424242', amountCents: 1_000, cardholderName: null };

/**
 * Eagerly starts, in this process, workflows that ask the simulated network for a card, and waits until each
 * has one.
 */
export async function createEagerStarts({ databaseUrl, temporal, ring }: BenchService) {
  const { address, namespace } = temporal;
  const logger = pino({ level: 'error' }, process.stderr);
  const taskQueue = `bench-eager-${randomUUID()}`;
  const { orm } = await openServiceDatabase(
    { databaseUrl, databaseDirectUrl: null, allowOwnerLogin: false },
    logger,
    {
      role: API_ROLE,
      poolSize: 20,
      shares: { accounts: 12, eachAccount: 12 },
      applicationName: 'card-issuing-bench',
    },
  );
  const live = await startLiveNetwork({
    config: { increase: null, lithic: null, networkKeyLifetimeMs: 72_000_000 },
    cardNetwork: 'simulated',
    apiUrl: null,
    orm,
    ring,
    budget: UNLIMITED,
    logger,
  });
  const waiting = new Map<string, () => void>();
  const worker = await startEagerWorker({
    config: { workerVersion: null, temporal: { connectionOptions: { address }, namespace }, codecKeys: null },
    taskQueue,
    workflowBundle: await bundleWorkflowCode({
      workflowsPath: fileURLToPath(new URL('./workflow.ts', import.meta.url)),
      logger: { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} },
    }),
    activities: {
      async askNetwork(token: string) {
        const answer = await live.network?.issueCard({ ...CARD, token });
        if (answer?.status !== 'issued') throw new Error(`the network said ${answer?.status}`);
        waiting.get(token)?.();
        waiting.delete(token);
      },
    },
    logger,
  });
  return {
    async execute(): Promise<void> {
      const id = newId('card');
      const asked = new Promise<void>((resolve) => waiting.set(id, resolve));
      await worker.client.workflow.start('askingWorkflow', {
        taskQueue,
        workflowId: id,
        args: [id],
        requestEagerStart: true,
      });
      await asked;
    },
    async stop(): Promise<void> {
      await worker.stop();
      await live.stop();
      await orm.close();
    },
  };
}

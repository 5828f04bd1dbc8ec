import type { Child } from '../../dev/process/child.ts';
import type { Config } from '../../platform/config/service.ts';
import { kill, scratchFolder, startProcess } from '../support/crash/processes.ts';
import { tronConfigOf } from '../support/deposits/deposit-stack.ts';
import { asOwner } from '../support/postgres.ts';
import { startTestStack } from '../support/stack.ts';
import type { Service } from './clients/running-service.ts';
import { startTokenChain } from './clients/token-chain.ts';

export interface RunningService extends Service {
  stop(): Promise<void>;
}

/** @param worker a process, which can be killed, or in this one, which costs less */
export async function startService(worker: 'a process' | 'here'): Promise<RunningService> {
  const chain = await startTokenChain();
  const stack = await startTestStack(
    {
      // Short, so that operators get something to decide, and no client waits long for a killed process.
      ...{
        cardCreationWaitMs: 3_000,
        issuanceDeadlineMs: 20_000,
        topUpDeadlineMs: 20_000,
        withdrawalDeadlineMs: 20_000,
        logLevel: 'error',
      },
      // Some are paid in time, and some late.
      depositAddressTtlMs: 6_000,
      tron: { ...tronConfigOf(chain.nodes), scanIntervalMs: 300 },
    },
    { worker: false },
  );
  const { config } = stack;
  const process = worker === 'a process' ? await startKillable(config) : null;
  if (process === null) await stack.startWorker();

  return {
    stack,
    chain,
    troubled: false,
    answers: new Map(),
    waiting: new Set(),
    origin: `http://${config.host}:${config.port}`,
    async lapse(authorization) {
      const lapsed = `UPDATE card_authorization SET expires_at = now()
        WHERE status = 'pending' AND (id = $1 OR network_authorization_id = $1)`;
      await asOwner(stack, lapsed, [authorization]);
    },
    ...(process && { kill: process.kill }),
    async stop() {
      await process?.stop();
      await stack.stop();
      await chain.stop();
    },
  };
}

async function startKillable(config: Config) {
  const folder = scratchFolder();
  const start = () => startProcess(config, folder, 'worker/main.ts');
  let worker: Child = await start();
  return {
    async kill() {
      await kill(worker);
      worker = await start();
      return 'worker';
    },
    async stop() {
      await kill(worker);
    },
  };
}

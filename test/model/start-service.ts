import { rmSync } from 'node:fs';
import { freePort } from '../../dev/free-port.ts';
import type { Child } from '../../dev/process/child.ts';
import { kill, scratchFolder, startApiProcess, startProcess } from '../support/crash/processes.ts';
import { tronConfigOf } from '../support/deposits/deposit-stack.ts';
import { startOwnPostgres } from '../support/postgres.ts';
import { startTestStack } from '../support/stack.ts';
import type { Service } from './clients/running-service.ts';
import { startTokenChain } from './clients/token-chain.ts';

type Victim = 'worker' | 'API' | 'PostgreSQL';

export interface RunningService extends Service {
  stop(): Promise<void>;
}

/** A stack with a worker process, and, where these are to die, a second API and a PostgreSQL server of its own. */
export async function startService(victims: readonly Victim[]): Promise<RunningService> {
  const folder = scratchFolder();
  const postgres = victims.includes('PostgreSQL') ? await startOwnPostgres() : undefined;
  const chain = await startTokenChain();
  const stack = await startTestStack(
    {
      // Short, so that an operator has something to decide, and no client waits long for what was killed.
      ...{
        cardCreationWaitMs: 3_000,
        issuanceDeadlineMs: 20_000,
        topUpDeadlineMs: 20_000,
        logLevel: 'error',
      },
      // Some are paid in time, and some late.
      depositAddressTtlMs: 6_000,
      tron: { ...tronConfigOf(chain.nodes), scanIntervalMs: 300 },
      ...(postgres === undefined ? {} : { databaseUrl: postgres.databaseUrl }),
    },
    { worker: false },
  );
  const { config } = stack;
  const second = { ...config, port: await freePort() };
  const startWorker = () => startProcess(config, folder, 'worker/main.ts');
  const startApi = () => startApiProcess(second, folder);
  let worker: Child = await startWorker();
  let api: Child | undefined = victims.includes('API') ? await startApi() : undefined;
  const ports = [config.port, ...(api === undefined ? [] : [second.port])];
  let requests = 0;
  let kills = 0;

  return {
    stack,
    chain,
    troubled: false,
    answers: new Map(),
    nextOrigin: () => `http://${config.host}:${ports[requests++ % ports.length]}`,
    async kill() {
      const victim = victims[kills++ % victims.length] as Victim;
      if (victim === 'PostgreSQL') await postgres?.crash();
      if (victim === 'worker') {
        await kill(worker);
        worker = await startWorker();
      }
      if (victim === 'API' && api !== undefined) {
        await kill(api);
        api = await startApi();
      }
      return victim;
    },
    async stop() {
      await kill(worker);
      if (api !== undefined) await kill(api);
      await stack.stop();
      await chain.stop();
      await postgres?.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

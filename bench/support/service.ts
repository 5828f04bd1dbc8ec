import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createApiKey } from '../../accounts/api-keys.ts';
import { createPartner } from '../../accounts/partners.ts';
import { setCurrentProduct } from '../../cards/products.ts';
import { freePort } from '../../dev/free-port.ts';
import { KeyRing } from '../../platform/crypto/key-ring.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { createTestDatabase, openOperatorOrm } from '../../test/support/postgres.ts';
import { testServers } from '../../test/support/servers.ts';

export interface BenchService {
  /** The origin of the first API process, without /v1. */
  origin: string;
  /** The origins of all API processes. */
  origins: string[];
  /** The service's database URL. */
  databaseUrl: string;
  temporal: { address: string; namespace: string; source: string };
  partnerId: string;
  testKey: string;
  /** With the operator's login. */
  orm: Orm;
  ring: KeyRing;
  apiPids: number[];
  /** 0 if there is no worker. */
  workerPid: number;
  stop(): Promise<void>;
}

const entry = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

interface BenchServiceOptions {
  worker: boolean;
  /** How many API processes; by default one. */
  apis?: number;
  /** More configuration for all processes. */
  env?: Record<string, string>;
}

/** Starts API and worker as processes of their own, on a fresh database with one partner. */
export async function startService(options: BenchServiceOptions): Promise<BenchService> {
  const folder = await mkdtemp(join(tmpdir(), 'card-issuing-bench-'));
  const temporal = testServers().temporal;
  const databaseUrl = await createTestDatabase();
  console.log(`Temporal: ${temporal.source}`);
  const secret = randomBytes(32);
  const env = {
    HOST: '127.0.0.1',
    DATABASE_URL: databaseUrl,
    TEMPORAL_ADDRESS: temporal.address,
    TEMPORAL_NAMESPACE: temporal.namespace,
    TASK_QUEUE_PREFIX: `bench-${randomUUID().slice(0, 8)}-`,
    ENCRYPTION_KEYS: `k1:${secret.toString('base64')}`,
    CARD_NETWORK: 'simulated',
    RATE_LIMIT_PER_SECOND: '0',
    STORED_MB_PER_DAY: '0',
    WEBHOOK_ALLOW_LOOPBACK_HTTP: 'true',
    ...options.env,
  };
  const orm = await openOperatorOrm(databaseUrl);
  const ring = new KeyRing([{ id: 'k1', secret }]);
  const operator = { orm, ring, actor: 'bench' };
  await setCurrentProduct(operator, { code: 'BENCH', bin: '424242', scheme: 'visa' });
  const partner = await createPartner(operator, { name: 'Bench', secureDetailsEnabled: false });
  const { key } = await createApiKey(operator, { partnerId: partner.id, mode: 'test', name: null });

  const ports: number[] = [];
  while (ports.length < (options.apis ?? 1)) ports.push(await freePort());
  const apis = ports.map((port) =>
    startProcess(entry('api/main.ts'), { ...env, PORT: String(port) }, join(folder, `api-${port}.log`)),
  );
  const origins = ports.map((port) => `http://127.0.0.1:${port}`);
  const worker = options.worker
    ? startProcess(entry('worker/main.ts'), { ...env, PORT: String(ports[0]) }, join(folder, 'worker.log'))
    : undefined;
  for (const origin of origins) {
    await until('the service is ready', async () => {
      const { workers, status } = (await (await fetch(`${origin}/readyz`)).json()) as Readiness;
      return status === 'ready' && (!options.worker || Object.values(workers).every((count) => count > 0));
    });
  }
  return {
    origin: origins[0] ?? '',
    origins,
    databaseUrl,
    temporal,
    partnerId: partner.id,
    testKey: key,
    orm,
    ring,
    apiPids: apis.map((api) => api.child.pid ?? 0),
    workerPid: worker?.child.pid ?? 0,
    stop: async () => {
      await Promise.all(apis.map((api) => api.stop()));
      await worker?.stop();
      await orm.close();
      await rm(folder, { recursive: true });
    },
  };
}

interface Readiness {
  status: string;
  workers: Record<string, number>;
}

/** Waits up to five minutes until `check` is true. A refused connection counts as false. */
export async function until(what: string, check: () => Promise<boolean>, everyMs = 100): Promise<void> {
  for (const giveUpAt = Date.now() + 300_000; Date.now() < giveUpAt; await sleep(everyMs)) {
    const done = await check().catch((error: unknown) => {
      if (error instanceof TypeError) return false;
      throw error;
    });
    if (done) return;
  }
  throw new Error(
    `gave up after five minutes of waiting until ${what}: look at the logs in the temporary folder`,
  );
}

/** A process of this project, as production runs it; its output goes to `logFile`. */
interface StartedProcess {
  child: ChildProcess;
  stop(): Promise<void>;
}

function startProcess(entry: string, env: Record<string, string>, logFile: string): StartedProcess {
  const output = openSync(logFile, 'a');
  const child = spawn(process.execPath, [entry], {
    env: { ...process.env, ...env },
    stdio: ['ignore', output, output],
  });
  return {
    child,
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}

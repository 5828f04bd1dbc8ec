import Router from '@koa/router';
import type { Client } from '@temporalio/client';
import { sql } from 'kysely';
import type { Logger } from 'pino';
import { expectedMigrations } from '../db/migrate.ts';
import type { Orm } from '../db/orm.ts';
import { readStatement } from '../db/sql.ts';
import type { TronNetwork } from '../domain/deposit.ts';
import { describeError } from '../process/describe-error.ts';
import { atMostOften } from './at-most-often.ts';
import { readScanProgress } from './deposit-metrics.ts';

const PROBE_TIMEOUT_MS = 3_000;
/** More frequent probes get the cached result, so that they cost little. */
const COMPUTED_EVERY_MS = 1_000;
const WORKFLOW_TASK_QUEUE = 1;

export interface ReadinessDependencies {
  orm: Orm;
  client: Client;
  /** The task queues that workers poll. */
  taskQueues: string[];
  /** Null if there is no chain to read. */
  tronNetwork: TronNetwork | null;
  logger: Logger;
}

/** `GET /healthz`: the process responds. */
export function health(): Router {
  const router = new Router();
  router.get('/healthz', (ctx) => {
    ctx.body = { status: 'ok' };
  });
  return router;
}

/**
 * `GET /readyz`: whether PostgreSQL, its migrations and Temporal are available. The response names what is not; the log says
 * why. The workers and the scan's progress are for information only.
 * @param stateOf the dependencies to check, or why the process is not ready regardless of them
 */
export function readiness(stateOf: () => ReadinessDependencies | 'is starting' | 'is stopping'): Router {
  const compute = atMostOften(COMPUTED_EVERY_MS, async () => {
    const state = stateOf();
    return typeof state === 'string' ? notReady(state) : computeReadiness(state);
  });
  const router = new Router();
  router.get('/readyz', async (ctx) => {
    // Not cached: a process that is stopping should get no more requests.
    const state = stateOf();
    const { status, body } = typeof state === 'string' ? notReady(state) : await compute();
    ctx.status = status;
    ctx.body = body;
  });
  return router;
}

const notReady = (why: string) => ({
  status: 503,
  body: { status: 'not_ready', problems: { process: why }, workers: {}, scan: null },
});

async function computeReadiness(
  dependencies: ReadinessDependencies,
): Promise<{ status: number; body: object }> {
  const [postgresql, temporal, scan] = await Promise.all([
    probe(dependencies, 'postgresql', () => findMissingMigrations(dependencies)),
    probe(dependencies, 'temporal', () => countPollers(dependencies)),
    probe(dependencies, 'scan', () => presentScan(dependencies)),
  ]);
  const problems = {
    ...(postgresql === null && { postgresql: UNREACHABLE }),
    ...(postgresql?.length && {
      postgresql: `migrations are missing (${postgresql.join(', ')}): run "npm run migrate"`,
    }),
    ...(temporal === null && { temporal: UNREACHABLE }),
  };
  const isReady = Object.keys(problems).length === 0;
  return {
    status: isReady ? 200 : 503,
    body: { status: isReady ? 'ready' : 'not_ready', problems, workers: temporal ?? {}, scan },
  };
}

const UNREACHABLE = 'is unreachable';

/** Null if the check failed or took too long. */
async function probe<T>(
  { logger }: ReadinessDependencies,
  part: string,
  check: () => Promise<T>,
): Promise<T | null> {
  const timeout = new Promise<never>((_resolve, reject) => {
    setTimeout(
      () => reject(new Error(`no response within ${PROBE_TIMEOUT_MS} ms`)),
      PROBE_TIMEOUT_MS,
    ).unref();
  });
  try {
    return await Promise.race([check(), timeout]);
  } catch (error) {
    logger.warn({ part, error: describeError(error) }, 'not ready: a dependency is unreachable');
    return null;
  }
}

async function findMissingMigrations({ orm }: ReadinessDependencies): Promise<string[]> {
  const applied = new Set((await appliedMigrations(orm.em.fork(), {})).map(({ name }) => name));
  return (await expectedMigrations()).filter((name) => !applied.has(name));
}

const appliedMigrations = readStatement(() => sql<{ name: string }>`SELECT name FROM schema_migration`);

/** How far the chain has been scanned. For information only: a scan that is behind finds payments later. */
async function presentScan({ orm, tronNetwork }: ReadinessDependencies): Promise<object | null> {
  if (tronNetwork === null) return null;
  const { network, waitsFor, lag, state } = await readScanProgress(orm, tronNetwork);
  return {
    ...{ network, waits_for: waitsFor, height: state?.blockNumber ?? null },
    ...{ lag_blocks: lag.blocks, lag_seconds: lag.seconds, node: state?.node ?? null },
  };
}

/** How many workers poll each queue. For information only: without any, work waits and nothing is lost. */
async function countPollers({ client, taskQueues }: ReadinessDependencies): Promise<Record<string, number>> {
  const counts = taskQueues.map(async (name) => {
    const { pollers } = await client.withDeadline(Date.now() + PROBE_TIMEOUT_MS, () =>
      client.workflowService.describeTaskQueue({
        namespace: client.options.namespace,
        taskQueue: { name },
        taskQueueType: WORKFLOW_TASK_QUEUE,
      }),
    );
    return [name, pollers?.length ?? 0] as const;
  });
  return Object.fromEntries(await Promise.all(counts));
}

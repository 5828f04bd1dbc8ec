import Router from '@koa/router';
import type { Client } from '@temporalio/client';
import { expectedMigrations } from '../../db/migration-names.ts';
import type { Orm } from '../../db/orm.ts';
import { query } from '../../db/sql.ts';
import { describeError } from '../../domain/describe-error.ts';
import type { RequestState } from '../request-state.ts';

const PROBE_TIMEOUT_MS = 3_000;
const WORKFLOW_TASK_QUEUE = 1;

export interface HealthDependencies {
  orm: Orm;
  client: Client;
  /** Those that workers poll. */
  taskQueues: string[];
}

/** `GET /healthz`: the process answers. `GET /readyz`: so do PostgreSQL, its migrations and Temporal. */
export function health(dependencies: HealthDependencies): Router<RequestState> {
  const router = new Router<RequestState>();
  router.get('/healthz', (ctx) => {
    ctx.body = { status: 'ok' };
  });
  router.get('/readyz', async (ctx) => {
    const [postgresql, temporal] = await Promise.all([
      probe(() => checkDatabase(dependencies)),
      probe(() => countPollers(dependencies)),
    ]);
    const problems = { ...problemOf('postgresql', postgresql), ...problemOf('temporal', temporal) };
    const ready = Object.keys(problems).length === 0;
    ctx.status = ready ? 200 : 503;
    const workers = 'value' in temporal ? temporal.value : {};
    ctx.body = { status: ready ? 'ready' : 'not_ready', problems, workers };
  });
  return router;
}

type Probe<T> = { value: T } | { problem: string };

async function probe<T>(check: () => Promise<T>): Promise<Probe<T>> {
  const timeout = new Promise<never>((_resolve, reject) => {
    setTimeout(() => reject(new Error(`no answer within ${PROBE_TIMEOUT_MS} ms`)), PROBE_TIMEOUT_MS).unref();
  });
  try {
    return { value: await Promise.race([check(), timeout]) };
  } catch (error) {
    return { problem: describeError(error).summary };
  }
}

function problemOf(what: string, result: Probe<unknown>): Record<string, string> {
  return 'problem' in result ? { [what]: result.problem } : {};
}

async function checkDatabase({ orm }: HealthDependencies): Promise<void> {
  const rows = await query<{ name: string }>(orm.em.fork(), 'SELECT name FROM schema_migration WHERE $1', [
    true,
  ]);
  const applied = new Set(rows.map((row) => row.name));
  const missing = (await expectedMigrations()).filter((name) => !applied.has(name));
  if (missing.length > 0)
    throw new Error(`migrations are missing (${missing.join(', ')}): run "npm run migrate"`);
}

/** The workers that poll each queue, for information: without one nothing is lost, it waits. */
async function countPollers({ client, taskQueues }: HealthDependencies): Promise<Record<string, number>> {
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

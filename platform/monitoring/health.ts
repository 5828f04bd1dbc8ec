import Router from '@koa/router';
import type { Client } from '@temporalio/client';
import { sql } from 'kysely';
import type { Logger } from 'pino';
import { Gauge, type Metric } from 'prom-client';
import { expectedMigrations, functionFiles } from '../db/migrate.ts';
import type { Orm } from '../db/orm.ts';
import { readStatement } from '../db/sql.ts';
import { describeError } from '../process/describe-error.ts';
import { atMostOften } from './at-most-often.ts';

const PROBE_TIMEOUT_MS = 3_000;
/** More frequent probes get the cached result, so that they cost little. */
const COMPUTED_EVERY_MS = 1_000;
const WORKFLOW_TASK_QUEUE = 1;

export interface ReadinessDependencies {
  orm: Orm;
  client: Client;
  /** The task queues that workers poll; null in a process that does not use Temporal. */
  taskQueues: string[] | null;
  /** How far the chain has been scanned; null if there is no chain to read. */
  readScan: (() => Promise<object>) | null;
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

/** The dependencies to check, or why the process is not ready regardless of them. */
type State = ReadinessDependencies | 'is starting' | 'is stopping';

/**
 * `GET /readyz`: whether PostgreSQL, its migrations and Temporal are available. The response names what is
 * not; the log says why. The workers and the scan's progress are for information only.
 *
 * `GET /servez`: whether requests should be sent here. It asks only for what every request needs, PostgreSQL
 * and its migrations: while Temporal is away, reads and test mode work, and live requests get their 503 from
 * the API.
 */
export function readiness(stateOf: () => State): { router: Router; metric: Metric } {
  // Read once: the files may be those of the next version by the time that this process is replaced.
  let files: Promise<SchemaFile[]> | undefined;
  const schemaFiles = () => {
    files ??= readSchemaFiles();
    return files;
  };
  const computing = (check: typeof checkAll) =>
    atMostOften(COMPUTED_EVERY_MS, async () => {
      const state = stateOf();
      return typeof state === 'string' ? notReady(state) : check(state, await schemaFiles());
    });
  const computeReady = computing(checkAll);
  const computeServing = computing(checkPostgres);
  const router = new Router();
  router.get('/readyz', async (ctx) => {
    // Not cached: a process that is stopping should get no more requests.
    const state = stateOf();
    const { problems, information } = typeof state === 'string' ? notReady(state) : await computeReady();
    const isReady = Object.keys(problems).length === 0;
    ctx.status = isReady ? 200 : 503;
    ctx.body = { status: isReady ? 'ready' : 'not_ready', problems, ...information };
  });
  router.get('/servez', async (ctx) => {
    const state = stateOf();
    const { problems } = typeof state === 'string' ? notReady(state) : await computeServing();
    const isServing = Object.keys(problems).length === 0;
    ctx.status = isServing ? 200 : 503;
    ctx.body = { status: isServing ? 'serving' : 'not_serving', problems };
  });
  const metric = new Gauge({
    name: 'dependency_reachable',
    help: '1 if this process reaches the dependency and can use it, otherwise 0: postgresql, temporal',
    labelNames: ['dependency'],
    registers: [],
    async collect() {
      this.reset();
      const state = stateOf();
      if (typeof state === 'string') return;
      const { problems } = await computeReady();
      this.set({ dependency: 'postgresql' }, 'postgresql' in problems ? 0 : 1);
      if (state.taskQueues !== null) this.set({ dependency: 'temporal' }, 'temporal' in problems ? 0 : 1);
    },
  });
  return { router, metric };
}

interface Checked {
  /** What is wrong, by its part. */
  problems: Record<string, string>;
  information: { workers: Record<string, number>; scan: object | null };
}

const notReady = (why: string): Checked => ({
  problems: { process: why },
  information: { workers: {}, scan: null },
});

async function checkAll(dependencies: ReadinessDependencies, files: SchemaFile[]): Promise<Checked> {
  const [{ problems }, temporal, scan] = await Promise.all([
    checkPostgres(dependencies, files),
    probe(dependencies, 'temporal', () => countPollers(dependencies)),
    // For information only: a scan that is behind finds payments later.
    probe(dependencies, 'scan', async () => (await dependencies.readScan?.()) ?? null),
  ]);
  if (temporal === null) problems.temporal = UNREACHABLE;
  return { problems, information: { workers: temporal ?? {}, scan } };
}

async function checkPostgres(dependencies: ReadinessDependencies, files: SchemaFile[]): Promise<Checked> {
  const missing = await probe(dependencies, 'postgresql', () => findMissing(dependencies, files));
  const problems: Checked['problems'] = {};
  if (missing === null) problems.postgresql = UNREACHABLE;
  else if (missing.length > 0)
    problems.postgresql = `the database lacks ${missing.join(', ')}: run "npm run migrate"`;
  return { problems, information: { workers: {}, scan: null } };
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

/** A migration or a function of this version. */
interface SchemaFile {
  name: string;
  /** How the database names it once it was applied. */
  applied: string;
}

async function readSchemaFiles(): Promise<SchemaFile[]> {
  const [migrations, functions] = await Promise.all([expectedMigrations(), functionFiles()]);
  return [
    ...migrations.map((name) => ({ name, applied: name })),
    ...functions.map(({ name, sha256 }) => ({ name, applied: `${name} ${sha256.toString('hex')}` })),
  ];
}

/** Those that were never applied. A function that a later version replaced is not missing. */
async function findMissing({ orm }: ReadinessDependencies, files: SchemaFile[]): Promise<string[]> {
  const rows = await appliedFiles(orm.em.fork(), {});
  const names = new Set(rows.map(({ name }) => name));
  return files.filter(({ applied }) => !names.has(applied)).map(({ name }) => name);
}

const appliedFiles = readStatement(
  () => sql<{ name: string }>`SELECT name FROM schema_migration
    UNION ALL SELECT name || ' ' || encode(sha256, 'hex') FROM schema_function`,
);

/** How many workers poll each queue. For information only: without any, work waits and nothing is lost. */
async function countPollers({ client, taskQueues }: ReadinessDependencies): Promise<Record<string, number>> {
  const counts = (taskQueues ?? []).map(async (name) => {
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

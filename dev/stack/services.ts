import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Connection, type ConnectionOptions, isGrpcServiceError } from '@temporalio/client';
import { tsToMs } from '@temporalio/common/lib/time.js';
import { cardsTaskQueue } from '../../platform/config/task-queues.ts';
import { type Child, type StopStep, startChild, untilReady } from '../process/child.ts';
import { rotateLog } from '../process/files.ts';
import { keepRunning, type Running } from '../process/keep-running.ts';

interface ServicesOptions {
  /** The API's. */
  env: NodeJS.ProcessEnv;
  workerEnv: NodeJS.ProcessEnv;
  logs: string;
  /** The codec endpoint's environment and origin; undefined: there is none. */
  codec: { env: NodeJS.ProcessEnv; origin: string } | undefined;
  /** The origin of the API's /readyz. */
  readinessOrigin: string;
  temporal: { connection: ConnectionOptions; namespace: string };
  report: (line: string) => void;
  onSpawn: (name: string, pid: number) => void;
  disposables: AsyncDisposableStack;
}

/** Starts the worker, the API and the codec endpoint, and restarts each whenever it ends. */
export async function startServices(options: ServicesOptions): Promise<void> {
  const { env, logs, report, onSpawn, disposables } = options;
  const { namespace } = options.temporal;
  const taskQueue = cardsTaskQueue(env.TASK_QUEUE_PREFIX ?? '');
  const connection = Connection.lazy(options.temporal.connection);
  disposables.defer(() => connection.close());

  const keep = (name: string, start: Parameters<typeof keepRunning>[0]['start']) => {
    report(`starting the ${name}`);
    return keepRunning({ name, report, start });
  };
  const common = { env, onSpawn };
  const { codec } = options;
  const codecEndpoint =
    codec &&
    keep('codec endpoint', (stopping) =>
      startService({
        ...common,
        env: codec.env,
        stopping,
        name: 'codec endpoint',
        entry: 'operator/codec/main.ts',
        logFile: join(logs, 'codec.log'),
        onLine: echoErrors('codec endpoint', report),
        isReady: () => answers(`${codec.origin}/healthz`),
        stopSteps: [{ signal: 'SIGTERM', graceMs: 2_000 }],
      }),
    );
  const worker = keep('worker', (stopping) => {
    const sinceMs = Date.now();
    return startService({
      ...common,
      env: options.workerEnv,
      stopping,
      name: 'worker',
      entry: 'worker/main.ts',
      logFile: join(logs, 'worker.log'),
      onLine: echoErrors('worker', report),
      isReady: () => isWorkerPolling(connection, { namespace, taskQueue, sinceMs }),
      // Longer than the time the worker gives its activities to end.
      stopSteps: [{ signal: 'SIGTERM', graceMs: 6_000 }],
    });
  });
  const api = keep('API', (stopping) =>
    startService({
      ...common,
      stopping,
      name: 'API',
      entry: 'api/main.ts',
      logFile: join(logs, 'api.log'),
      onLine: echoErrors('API', report),
      // The API is ready once PostgreSQL answers, is migrated, and Temporal answers.
      isReady: () => answers(`${options.readinessOrigin}/readyz`),
      stopSteps: [{ signal: 'SIGTERM', graceMs: 3_000 }],
    }),
  );
  // The API is stopped first, whichever was ready first.
  for (const started of await Promise.allSettled([codecEndpoint, worker, api])) {
    if (started.status === 'fulfilled') disposables.defer(async () => started.value?.stop());
  }
  await Promise.all([codecEndpoint, worker, api]);
}

interface ServiceOptions {
  name: string;
  /** The file that Node runs. */
  entry: string;
  env: NodeJS.ProcessEnv;
  logFile: string;
  /** Polled until it is true: the service does its work. */
  isReady: () => Promise<boolean>;
  stopSteps: readonly StopStep[];
  onLine: (line: string) => void;
  onSpawn: (name: string, pid: number) => void;
  /** Interrupts the wait until it is ready. */
  stopping: AbortSignal;
}

/** Starts one of the service's processes, and returns once it does its work. */
async function startService(options: ServiceOptions): Promise<Running> {
  rotateLog(options.logFile);
  const file = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
  // As in `npm run worker` and `npm run api`.
  const args = ['--import', file('platform/process/check-node.mjs'), file(options.entry)];
  const child = await startChild({ ...options, command: process.execPath, args });
  try {
    const isReady = () => {
      options.stopping.throwIfAborted();
      return options.isReady();
    };
    await untilReady(child, isReady, 120_000);
  } catch (error) {
    await child.stop(options.stopSteps);
    throw error;
  }
  return { exited: howItEnded(child), stop: () => child.stop(options.stopSteps) };
}

async function howItEnded(child: Child): Promise<string> {
  const how = await child.exited;
  return [how, ...crashLines(child.lastLines())].join('\n');
}

/** Whether a GET of this URL is answered with 200. */
async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(10_000) });
    await response.arrayBuffer();
    return response.status === 200;
  } catch (error) {
    // Nobody listens yet (TypeError), or the answer takes too long (DOMException).
    if (error instanceof TypeError || error instanceof DOMException) return false;
    throw error;
  }
}

/** temporal.api.enums.v1.TaskQueueType */
const WORKFLOW = 1;

/** Whether a worker has polled this task queue for workflow tasks since a moment. */
async function isWorkerPolling(
  connection: Connection,
  place: { namespace: string; taskQueue: string; sinceMs: number },
): Promise<boolean> {
  try {
    const { pollers } = await connection.workflowService.describeTaskQueue({
      namespace: place.namespace,
      taskQueue: { name: place.taskQueue },
      taskQueueType: WORKFLOW,
    });
    return (pollers ?? []).some(({ lastAccessTime: at }) => at != null && tsToMs(at) >= place.sinceMs);
  } catch (error) {
    // The Temporal server may itself be restarting.
    if (isGrpcServiceError(error)) return false;
    throw error;
  }
}

const ERROR_LEVEL = 50;

/** Prints the errors of a child's JSON log to the terminal, one line each. The log file has everything. */
function echoErrors(name: string, report: (line: string) => void): (line: string) => void {
  return (line) => {
    const entry = parse(line);
    if (entry !== undefined && Number(entry.level) >= ERROR_LEVEL) report(`${name}: ${describe(entry)}`);
  };
}

/** The last lines of a child that are not log entries: what Node itself prints about a crash. */
function crashLines(lines: readonly string[]): string[] {
  return lines.filter((line) => parse(line) === undefined && line.trim() !== '');
}

interface LogEntry {
  level?: unknown;
  msg?: unknown;
  err?: { message?: unknown };
}

function parse(line: string): LogEntry | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    return JSON.parse(line);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function describe(entry: LogEntry): string {
  const cause = entry.err?.message;
  return cause === undefined || cause === entry.msg ? `${entry.msg}` : `${entry.msg}: ${cause}`;
}

import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Connection, type ConnectionOptions } from '@temporalio/client';
import { cardsTaskQueue } from '../../config/task-queues.ts';
import { keepRunning } from '../process/keep-running.ts';
import { echoErrors } from './echo-errors.ts';
import { isApiReady } from './is-api-ready.ts';
import { isWorkerPolling } from './is-worker-polling.ts';
import { startService } from './start-service.ts';

export interface ServicesOptions {
  env: NodeJS.ProcessEnv;
  logs: string;
  /** What Node runs for each; by default the service's own. */
  workerArgs?: readonly string[];
  apiArgs?: readonly string[];
  /** Where the API says whether it is ready. */
  readinessOrigin: string;
  temporal: { connection: ConnectionOptions; namespace: string };
  report: (line: string) => void;
  onSpawn: (name: string, pid: number) => void;
  disposables: AsyncDisposableStack;
}

/** Starts the worker and the API, each of which is started again should it end. */
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
  const worker = keep('worker', (stopping) => {
    const sinceMs = Date.now();
    return startService({
      ...common,
      stopping,
      name: 'worker',
      args: options.workerArgs ?? [...NODE_ARGS, entry('worker/main.ts')],
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
      args: options.apiArgs ?? [...NODE_ARGS, entry('api/main.ts')],
      logFile: join(logs, 'api.log'),
      onLine: echoErrors('API', report),
      isReady: () => isApiReady(options.readinessOrigin),
      stopSteps: [{ signal: 'SIGTERM', graceMs: 3_000 }],
    }),
  );
  // The API is stopped first, whichever was ready first.
  for (const started of await Promise.allSettled([worker, api])) {
    if (started.status === 'fulfilled') disposables.defer(() => started.value.stop());
  }
  await Promise.all([worker, api]);
}

/** As `npm run worker` and `npm run api`. */
const NODE_ARGS = ['--import', new URL('../../process/check-node.mjs', import.meta.url).href];

function entry(path: string): string {
  return fileURLToPath(new URL(`../../${path}`, import.meta.url));
}

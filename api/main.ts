import { readApiConfig } from '../platform/config/service.ts';
import { cardsTaskQueue } from '../platform/config/task-queues.ts';
import { createLogger } from '../platform/process/logger.ts';
import { runProcess } from '../platform/process/run-process.ts';
import { startApi } from './server.ts';

await runProcess('api', async () => {
  const config = readApiConfig();
  const logger = createLogger('api', config.logLevel);
  const api = await startApi(config, logger, {
    hostWorker: async (activities, tracing) => {
      // Loaded once the API is listening, since reads and test mode do not need it.
      const { startEagerWorker } = await import('../platform/temporal/eager-worker.ts');
      const taskQueue = cardsTaskQueue(config.taskQueuePrefix);
      const { workflowBundle } = config;
      return startEagerWorker({ config, taskQueue, activities, workflowBundle, logger, tracing });
    },
  });
  logger.info({ url: api.url, parts: config.apiParts }, 'the API is listening');
  return { stop: api.stop, ended: new Promise(() => {}) };
});

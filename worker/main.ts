import { readWorkerConfig } from '../platform/config/service.ts';
import { createLogger } from '../platform/process/logger.ts';
import { runProcess } from '../platform/process/run-process.ts';
import { startWorker } from './start-worker.ts';

await runProcess('worker', async () => {
  const config = readWorkerConfig();
  const logger = createLogger('worker', config.logLevel);
  const worker = await startWorker(config, logger, { workflowBundle: config.workflowBundle });
  logger.info({ url: worker.operationsUrl }, 'the worker is polling');
  return worker;
});

import { readConfig } from '../config.ts';
import { createLogger } from '../logger.ts';
import { runProcess } from '../run-process.ts';
import { installRuntime } from './install-runtime.ts';
import { startWorker } from './start-worker.ts';

await runProcess('worker', async () => {
  const config = readConfig();
  const logger = createLogger('worker', config.logLevel);
  installRuntime(logger);
  const worker = await startWorker(config, logger);
  logger.info('the worker is polling');
  return worker;
});

import { readConfig } from '../../../platform/config/service.ts';
import { createLogger } from '../../../platform/process/logger.ts';
import { startWorker } from '../../../worker/start-worker.ts';

/** A worker whose reconciliation looks again at once. Argument: the file with the bundled workflows. */
const config = readConfig();
await startWorker(config, createLogger('worker', config.logLevel), {
  workflowBundle: { codePath: process.argv[2] ?? '' },
  around: { reconcileGraceMs: 10 },
});

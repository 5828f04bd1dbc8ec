import { readConfig } from '../../../platform/config/service.ts';
import { createLogger } from '../../../platform/process/logger.ts';
import { startWorker } from '../../../worker/start-worker.ts';
import type { FaultOptions } from './fault.ts';
import { faultsAround } from './faults-around.ts';

/** A worker that is killed at places of its workflows. Argument: JSON of this. */
export interface FaultyWorkerOptions extends FaultOptions {
  codePath: string;
}

const { codePath, ...faultOptions } = JSON.parse(process.argv[2] ?? '') as FaultyWorkerOptions;
const config = readConfig();
const logger = createLogger('worker', config.logLevel);
const around = faultsAround(faultOptions, config.databaseUrl);
await startWorker(config, logger, { workflowBundle: { codePath }, around });

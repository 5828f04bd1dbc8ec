import { writeFileSync } from 'node:fs';
import { startApi } from '../../../api/server.ts';
import { readConfig } from '../../../platform/config/service.ts';
import { cardsTaskQueue } from '../../../platform/config/task-queues.ts';
import { createLogger } from '../../../platform/process/logger.ts';
import { startEagerWorker } from '../../../platform/temporal/eager-worker.ts';
import type { FaultOptions } from './fault.ts';
import { faultsAround } from './faults-around.ts';

/** An API process that is killed at places of the workflows it starts. Argument: JSON of this. */
export interface FaultyApiOptions extends FaultOptions {
  codePath: string;
  /** Written when the worker that it hosts is there. */
  hostingFile: string;
}

const { codePath, hostingFile, ...faultOptions } = JSON.parse(process.argv[2] ?? '') as FaultyApiOptions;
const config = readConfig();
const logger = createLogger('api', config.logLevel);
const around = faultsAround(faultOptions, config.databaseUrl);
await startApi(config, logger, {
  aroundNetwork: around.network,
  async hostWorker(activities) {
    const worker = await startEagerWorker({
      ...{ config, logger, workflowBundle: { codePath } },
      taskQueue: cardsTaskQueue(config.taskQueuePrefix),
      activities: around.activities(activities),
    });
    writeFileSync(hostingFile, '');
    return worker;
  },
});

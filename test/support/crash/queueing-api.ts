import { startApi } from '../../../api/server.ts';
import { readConfig } from '../../../platform/config/service.ts';
import { createLogger } from '../../../platform/process/logger.ts';

/** An API process that hosts no worker, as every one does at first: all its live work goes through the queue. */
const config = readConfig();
await startApi(config, createLogger('api', config.logLevel));

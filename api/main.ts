import { readConfig } from '../config.ts';
import { createLogger } from '../logger.ts';
import { runProcess } from '../run-process.ts';
import { startApi } from './start-api.ts';

await runProcess('api', async () => {
  const config = readConfig();
  const logger = createLogger('api', config.logLevel);
  const api = await startApi(config, logger);
  logger.info({ url: api.url }, 'the API listens');
  return { stop: api.stop, ended: new Promise(() => {}) };
});

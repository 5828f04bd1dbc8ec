import { readCodecConfig } from '../../platform/config/codec.ts';
import { createLogger } from '../../platform/process/logger.ts';
import { runProcess } from '../../platform/process/run-process.ts';
import { startCodec } from './server.ts';

await runProcess('codec endpoint', async () => {
  const config = readCodecConfig();
  const logger = createLogger('codec', config.logLevel);
  const { url, stop } = await startCodec(config, logger);
  logger.info({ url }, 'the codec endpoint is listening');
  return { stop, ended: new Promise(() => {}) };
});

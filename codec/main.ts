import { readCodecConfig } from '../config/codec.ts';
import { createLogger } from '../process/logger.ts';
import { runProcess } from '../process/run-process.ts';
import { startCodec } from './server.ts';

await runProcess('codec endpoint', async () => {
  const config = readCodecConfig();
  const logger = createLogger('codec', config.logLevel);
  const { url, stop } = await startCodec(config, logger);
  logger.info({ url }, 'the codec endpoint is listening');
  return { stop, ended: new Promise(() => {}) };
});

import { createServer } from 'node:http';
import type Router from '@koa/router';
import Koa from 'koa';
import type { Logger } from 'pino';
import { describeError } from '../process/describe-error.ts';
import { type HttpAddress, type Listening, listen } from '../process/listen.ts';

/**
 * Serves what operators and their machines ask a worker: it is no part of the API, and needs no key.
 * @throws StartRefused if the address can't be had
 */
export function serveOperations(
  address: HttpAddress,
  routers: readonly Router[],
  logger: Logger,
): Promise<Listening> {
  const app = new Koa();
  app.on('error', (error) => {
    logger.warn({ error: describeError(error) }, 'could not answer a request of operations');
  });
  app.use(async (ctx, next) => {
    ctx.set('Cache-Control', 'no-store');
    await next();
  });
  for (const router of routers) app.use(router.routes());
  return listen(createServer({ requestTimeout: 10_000 }, app.callback()), address, 'WORKER_PORT');
}

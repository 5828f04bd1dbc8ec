import type { RequestListener } from 'node:http';
import Router from '@koa/router';
import Koa from 'koa';
import type { Logger } from 'pino';
import rawBody from 'raw-body';
import { z } from 'zod';
import type { Orm } from '../../db/orm.ts';
import { isId } from '../../domain/ids.ts';
import { IssuanceRequest } from '../card-network/wire.ts';
import { authenticate } from './authenticate.ts';
import { readIssuance } from './read-issuance.ts';
import { takeIssuance } from './take-issuance.ts';

export interface NetworkApiOptions {
  orm: Orm;
  bearerToken: string;
  /** 32 bytes. */
  cardKey: Uint8Array;
  logger: Logger;
}

/** The network's HTTP API; its messages are in card-network/wire.ts. */
export function networkApi({ orm, bearerToken, cardKey, logger }: NetworkApiOptions): RequestListener {
  const router = new Router();

  router.post('/issuances', async (ctx) => {
    const body = await rawBody(ctx.req, { limit: '16kb', encoding: 'utf8' });
    const request = JsonText.pipe(IssuanceRequest).safeParse(body);
    if (!request.success) return ctx.throw(400, z.prettifyError(request.error));
    const taken = await takeIssuance(orm.em.fork(), cardKey, request.data);
    if (taken.status === 'conflict') return ctx.throw(409, 'This token belongs to another request.');
    if (taken.status === 'refused') return ctx.throw(503, 'Ask again with the same token.');
    if (taken.answerIsLost) {
      ctx.respond = false;
      ctx.req.socket.destroy();
      return;
    }
    ctx.body = { token: request.data.token, issuance: taken.answer };
  });

  router.get('/issuances/:token', async (ctx) => {
    const token = ctx.params.token ?? '';
    if (!isId('card', token)) return ctx.throw(400, 'The token must be a card id.');
    ctx.body = { token, issuance: await readIssuance(orm.em.fork(), token) };
  });

  const app = new Koa();
  app.on('error', (error: { status?: number }) => {
    if (error.status === undefined) logger.error({ err: error }, 'simulated network: a request failed');
  });
  app.use(authenticate(bearerToken));
  app.use(router.routes());
  return app.callback();
}

const JsonText = z.string().transform((text, ctx): unknown => {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    ctx.addIssue({ code: 'custom', message: 'must be JSON' });
    return z.NEVER;
  }
});

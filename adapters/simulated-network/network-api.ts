import type { KeyObject } from 'node:crypto';
import type { RequestListener } from 'node:http';
import Router from '@koa/router';
import Koa, { type Context } from 'koa';
import type { Logger } from 'pino';
import type { Orm } from '../../db/orm.ts';
import { isId } from '../../domain/ids.ts';
import { IssuanceRequest, StatusChangeOrder, TopUpOrder } from '../card-network/wire.ts';
import { authenticate } from './authenticate.ts';
import { readIssuance } from './read-issuance.ts';
import { readRequest } from './read-request.ts';
import { readTopUp } from './read-topup.ts';
import { revealDetails } from './reveal-details.ts';
import { takeIssuance } from './take-issuance.ts';
import type { Taken } from './take-operation.ts';
import { takeStatusChange } from './take-status-change.ts';
import { takeTopUp } from './take-topup.ts';

export interface NetworkApiOptions {
  orm: Orm;
  bearerToken: string;
  /** 32 bytes each; the first issues. */
  cardKeys: readonly [KeyObject, ...KeyObject[]];
  logger: Logger;
}

/** The network's HTTP API; its messages are in card-network/wire.ts. */
export function networkApi({ orm, bearerToken, cardKeys, logger }: NetworkApiOptions): RequestListener {
  const router = new Router();

  router.post('/issuances', async (ctx) => {
    const request = await readRequest(ctx, IssuanceRequest);
    const taken = await takeIssuance(orm.em.fork(), cardKeys[0], request);
    answer(ctx, taken, (issuance) => ({ token: request.token, issuance }));
  });

  router.get('/issuances/:token', async (ctx) => {
    const token = ctx.params.token ?? '';
    if (!isId('card', token)) return ctx.throw(400, 'The token must be a card id.');
    ctx.body = { token, issuance: await readIssuance(orm.em.fork(), token) };
  });

  router.post('/topups', async (ctx) => {
    const request = await readRequest(ctx, TopUpOrder);
    const taken = await takeTopUp(orm.em.fork(), request);
    answer(ctx, taken, (topUp) => ({ token: request.token, topUp }));
  });

  router.get('/topups/:token', async (ctx) => {
    const token = ctx.params.token ?? '';
    if (!isId('topup', token)) return ctx.throw(400, 'The token must be a top-up id.');
    ctx.body = { token, topUp: await readTopUp(orm.em.fork(), token) };
  });

  router.post('/status-changes', async (ctx) => {
    const request = await readRequest(ctx, StatusChangeOrder);
    const taken = await takeStatusChange(orm.em.fork(), request);
    answer(ctx, taken, (statusChange) => ({ token: request.token, statusChange }));
  });

  router.get('/cards/:networkCardId/details', async (ctx) => {
    const networkCardId = ctx.params.networkCardId ?? '';
    const isText = /^[\x21-\x7e]{1,100}$/.test(networkCardId);
    const details = isText ? await revealDetails(orm.em.fork(), cardKeys, networkCardId) : undefined;
    if (details === undefined) return ctx.throw(404, 'There is no such card.');
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { networkCardId, details };
  });

  const app = new Koa();
  app.on('error', (error: { status?: number }) => {
    if (error.status === undefined) logger.error({ err: error }, 'simulated network: a request failed');
  });
  app.use(authenticate(bearerToken));
  app.use(router.routes());
  return app.callback();
}

function answer<Answer>(ctx: Context, taken: Taken<Answer>, present: (answer: Answer) => object): void {
  if (taken.status === 'conflict') ctx.throw(409, 'This token belongs to another request.');
  if (taken.status === 'refused') ctx.throw(503, 'Ask again with the same token.');
  if (taken.answerIsLost) {
    ctx.respond = false;
    ctx.req.socket.destroy();
  } else {
    ctx.body = present(taken.answer);
  }
}

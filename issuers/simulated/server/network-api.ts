import { createHash, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { RequestListener } from 'node:http';
import Router from '@koa/router';
import Koa, { type Context, type Middleware } from 'koa';
import type { Logger } from 'pino';
import rawBody from 'raw-body';
import { z } from 'zod';
import { isId } from '../../../domain/ids.ts';
import { TRANSFER_DIRECTIONS, TRANSFERS } from '../../../domain/transfer.ts';
import type { Orm } from '../../../platform/db/orm.ts';
import { IssuanceOrder, StatusChangeOrder, TRANSFER_ORDERS, TRANSFER_PATHS } from '../wire.ts';
import {
  issuedCardWith,
  listIssuedCards,
  listMovedMoney,
  lookUpIssuance,
  lookUpTransfer,
  revealDetails,
} from './look-ups.ts';
import { type Taken, takeIssuance, takeStatusChange, takeTransfer } from './operations.ts';

interface NetworkApiOptions {
  orm: Orm;
  bearerToken: string;
  /** 32 bytes each; new cards use the first. */
  cardKeys(): readonly [KeyObject, ...KeyObject[]];
  logger: Logger;
}

/** The network's HTTP API. Its messages are in ../wire.ts. */
export function networkApi({ orm, bearerToken, cardKeys, logger }: NetworkApiOptions): RequestListener {
  const router = new Router();

  router.post('/issuances', async (ctx) => {
    const request = await readRequest(ctx, IssuanceOrder);
    const taken = await takeIssuance(orm, cardKeys()[0], request);
    answer(ctx, taken, (issuance) => ({ token: request.token, issuance }));
  });

  router.get('/issuances/:token', async (ctx) => {
    const token = ctx.params.token ?? '';
    if (!isId('card', token)) return ctx.throw(400, 'The token must be a card id.');
    ctx.body = { token, issuance: await lookUpIssuance(orm.em.fork(), token) };
  });

  for (const direction of TRANSFER_DIRECTIONS) {
    const path = TRANSFER_PATHS[direction];
    const { idPrefix, noun } = TRANSFERS[direction];
    router.post(path, async (ctx) => {
      const order = await readRequest(ctx, TRANSFER_ORDERS[direction]);
      const taken = await takeTransfer(orm, { ...order, direction });
      answer(ctx, taken, (transfer) => ({ token: order.token, transfer }));
    });

    router.get(`${path}/:token`, async (ctx) => {
      const token = ctx.params.token ?? '';
      if (!isId(idPrefix, token)) return ctx.throw(400, `The token must be a ${noun} id.`);
      ctx.body = { token, transfer: await lookUpTransfer(orm.em.fork(), direction, token) };
    });
  }

  router.post('/status-changes', async (ctx) => {
    const request = await readRequest(ctx, StatusChangeOrder);
    const taken = await takeStatusChange(orm, request);
    answer(ctx, taken, (statusChange) => ({ token: request.token, statusChange }));
  });

  router.get('/cards/:networkCardId/details', async (ctx) => {
    const networkCardId = ctx.params.networkCardId ?? '';
    const isText = /^[\x21-\x7e]{1,100}$/.test(networkCardId);
    const details = isText ? await revealDetails(orm.em.fork(), cardKeys(), networkCardId) : undefined;
    if (details === undefined) return ctx.throw(404, 'There is no such card.');
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { networkCardId, details };
  });

  router.get('/cards/:networkCardId', async (ctx) => {
    const networkCardId = ctx.params.networkCardId ?? '';
    const [card = null] = await issuedCardWith(orm.em.fork(), { networkCardId });
    ctx.body = { networkCardId, card };
  });

  router.get('/cards', async (ctx) => {
    ctx.body = { data: await listIssuedCards(orm.em.fork(), readPage(ctx)) };
  });

  router.get('/movements', async (ctx) => {
    ctx.body = { data: await listMovedMoney(orm.em.fork(), readPage(ctx)) };
  });

  const app = new Koa();
  app.on('error', (error: { status?: number }) => {
    if (error.status === undefined) logger.error({ err: error }, 'simulated network: a request failed');
  });
  app.use(authenticate(bearerToken));
  app.use(router.routes());
  return app.callback();
}

/**
 * Refuses requests without the bearer token, since others on the machine can reach the port. Compares in
 * constant time.
 */
function authenticate(bearerToken: string): Middleware {
  const expected = digest(`Bearer ${bearerToken}`);
  return async (ctx, next) => {
    if (!timingSafeEqual(digest(ctx.get('authorization')), expected)) {
      ctx.throw(401, 'Send the bearer token derived from the secret that this network was started with.');
    }
    await next();
  };
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function readPage(ctx: Context): { since: Date; after: string } {
  const page = z
    .object({ since: z.iso.datetime(), after: z.string().max(100).default('') })
    .safeParse(ctx.query);
  if (!page.success) return ctx.throw(400, z.prettifyError(page.error));
  return { since: new Date(page.data.since), after: page.data.after };
}

/** Reads a request's body. Responds 400 if it does not match `shape`, and 413 if it is over 16 KiB. */
async function readRequest<Body>(ctx: Context, shape: z.ZodType<Body, unknown>): Promise<Body> {
  const body = await rawBody(ctx.req, { limit: '16kb', encoding: 'utf8' });
  const request = JsonText.pipe(shape).safeParse(body);
  if (!request.success) return ctx.throw(400, z.prettifyError(request.error));
  return request.data;
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

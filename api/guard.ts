import type { IncomingMessage } from 'node:http';
import type { RouterContext, RouterMiddleware } from '@koa/router';
import { ApiError } from '../domain/api-error.ts';
import type { Authenticate } from './authenticate.ts';
import { idempotencyKeyOf, timesSent } from './headers.ts';
import type { RateLimit } from './rate-limit.ts';
import { readJsonBody } from './read-json-body.ts';
import type { RequestState } from './request-state.ts';
import type { Route } from './route.ts';
import { parseQuery, validate } from './validate.ts';

export interface GuardDependencies {
  authenticate: Authenticate;
  rateLimit: RateLimit;
}

/**
 * The way every request of /v1 goes: who is it, may it, is it well-formed; then the route's handler, then its answer.
 */
export function guard<Query, Body>(
  route: Route<Query, Body>,
  { authenticate, rateLimit }: GuardDependencies,
): RouterMiddleware<RequestState> {
  return async (ctx: RouterContext<RequestState>) => {
    const { req, state } = ctx;
    if (timesSent(req, 'authorization') > 1) throw new ApiError('invalid_api_key');
    const caller = await authenticate(req.headers.authorization);
    state.logFields.partnerId = caller.partnerId;
    state.logFields.mode = caller.mode;
    await rateLimit(caller.keyId);
    if (route.mode !== undefined && route.mode !== caller.mode) {
      throw new ApiError(route.mode === 'test' ? 'live_key_not_allowed' : 'test_key_not_allowed');
    }
    const idempotencyKey = route.needsIdempotencyKey ? idempotencyKeyOf(req) : '';
    const query = validate(route.query, parseQuery(ctx.querystring), 'query');
    const body = route.body === undefined ? undefined : validate(route.body, await bodyOf(req), 'body');

    const reply = await route.handle({
      caller,
      requestId: state.requestId,
      params: ctx.params,
      path: ctx.path,
      query,
      body: body as Body,
      idempotencyKey,
      log: (fields) => Object.assign(state.logFields, fields),
    });
    ctx.status = reply.status;
    if (reply.headers) ctx.set(reply.headers);
    ctx.type = 'application/json';
    ctx.body = typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body);
  };
}

async function bodyOf(req: IncomingMessage): Promise<unknown> {
  if (timesSent(req, 'content-type') > 1)
    throw ApiError.ofField('Content-Type', 'Content-Type must be sent once');
  return readJsonBody(req);
}

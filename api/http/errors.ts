import type { Middleware } from 'koa';
import type { Logger } from 'pino';
import { ApiError } from '../../domain/api-error.ts';
import { describeError } from '../../domain/describe-error.ts';
import { presentError } from '../../resources/error.ts';
import { isOutage } from './outage.ts';
import type { RequestState } from './request-state.ts';

/** Turns whatever was thrown into the one error body. What isn't the partner's doing is logged in full, without values. */
export function answerErrors(logger: Logger): Middleware<RequestState> {
  return async (ctx, next) => {
    try {
      await next();
    } catch (thrown) {
      const error = asApiError(thrown);
      if (error.status >= 500) {
        logger.error({ requestId: ctx.state.requestId, error: describeError(thrown) }, 'a request failed');
      }
      const { retryAfterSeconds, allow } = error.detail;
      ctx.status = error.status;
      if (retryAfterSeconds !== undefined) ctx.set('Retry-After', String(retryAfterSeconds));
      if (allow !== undefined) ctx.set('Allow', allow);
      if (error.code === 'invalid_api_key') ctx.set('WWW-Authenticate', 'Bearer');
      // What is left of the body is read and dropped: closing on a client that still writes would lose it the answer.
      if (error.code === 'body_too_large') ctx.req.resume();
      ctx.state.logFields.code = error.code;
      ctx.type = 'application/json';
      ctx.body = JSON.stringify(presentError(error, ctx.state.requestId));
    }
  };
}

function asApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  return new ApiError(isOutage(thrown) ? 'unavailable' : 'internal_error');
}

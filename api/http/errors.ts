import { isGrpcServiceError } from '@temporalio/client';
import { NamespaceNotFoundError } from '@temporalio/common';
import type { Middleware } from 'koa';
import type { Logger } from 'pino';
import { ApiError } from '../../domain/api-error.ts';
import { UNREACHABLE_CODES } from '../../platform/db/is-retryable.ts';
import { PoolBusy } from '../../platform/db/pool.ts';
import { SessionRefused } from '../../platform/db/session.ts';
import { describeError } from '../../platform/process/describe-error.ts';
import { presentError } from '../../requests/error-resource.ts';
import type { RequestState } from './log-request.ts';

/**
 * Turns whatever was thrown into the error body. A failure is logged in full, without values. A refusal that we
 * decided on is no failure: the request's own line has its code and reason, so that no account can flood the log
 * with errors.
 */
export function respondWithErrors(logger: Logger): Middleware<RequestState> {
  return async (ctx, next) => {
    try {
      await next();
    } catch (thrown) {
      const error = asApiError(thrown);
      if (error.code === 'unavailable' && error === thrown) ctx.state.logFields.reason = error.message;
      else if (error.status >= 500) {
        logger.error({ requestId: ctx.state.requestId, error: describeError(thrown) }, 'a request failed');
      }
      const { retryAfterSeconds, allow, operationId } = error.detail;
      ctx.status = error.status;
      if (retryAfterSeconds !== undefined) ctx.set('Retry-After', String(retryAfterSeconds));
      if (allow !== undefined) ctx.set('Allow', allow);
      if (operationId !== undefined) ctx.set('Operation-Id', operationId);
      if (error.code === 'invalid_api_key') ctx.set('WWW-Authenticate', 'Bearer');
      // Read the rest of the body and drop it: a client that is still sending would miss the response if we
      // closed.
      if (error.code === 'body_too_large') ctx.req.resume();
      ctx.state.error = error;
      ctx.state.logFields.code = error.code;
      ctx.type = 'application/json';
      ctx.body = `${JSON.stringify(presentError(error, ctx.state.requestId))}\n`;
    }
  };
}

function asApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  return new ApiError(isOutage(thrown) ? 'unavailable' : 'internal_error');
}

/**
 * CANCELLED, UNKNOWN, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, ABORTED, INTERNAL, UNAVAILABLE: a Temporal
 * server that is starting, stopping or without its database answers with any of them. A mistake in our own
 * request has other codes.
 */
const GRPC_OUTAGES = new Set([1, 2, 4, 8, 10, 13, 14]);
/**
 * PostgreSQL's classes 08 (connection), 53 (resources), 57P0x (shutting down, starting up), 25006
 * (read-only), and its timeouts (docs/decisions/time-limits.md): 55P03 (lock), 57014 (statement), 25P03 and
 * 25P04 (transaction).
 */
const SQLSTATE = /^(08|53|57P0|25006|55P03|57014|25P03|25P04)/;

/**
 * Messages of `pg` errors that have no code. The last one is a connection that broke while it was checked
 * out.
 */
const LOST_CONNECTION = /^(Connection terminated|Client .* is not queryable$)/;

/** Whether PostgreSQL or Temporal is out of reach, so that it makes sense to try again later. */
export function isOutage(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (isGrpcServiceError(cause)) return GRPC_OUTAGES.has(cause.code);
    // A Temporal server that has just started does not know its namespaces until it has loaded them.
    if (cause instanceof NamespaceNotFoundError) return true;
    if (cause instanceof PoolBusy || cause instanceof SessionRefused) return true;
    const code = (cause as { code?: unknown }).code;
    if (typeof code === 'string' && (UNREACHABLE_CODES.includes(code) || SQLSTATE.test(code))) return true;
    if (LOST_CONNECTION.test(cause.message)) return true;
  }
  return false;
}

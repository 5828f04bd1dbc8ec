import type { RouterContext } from '@koa/router';
import type { Context, Middleware } from 'koa';
import type { Logger } from 'pino';
import type { Histogram } from 'prom-client';
import type { ApiError } from '../../domain/api-error.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import type { Tracing } from '../../platform/process/tracing.ts';
import { asPartOf } from '../../platform/process/work-context.ts';
import type { Caller, Credential } from './authenticate.ts';
import type { ReadClientAddress } from './client-address.ts';

export type RequestDurations = Histogram<'method' | 'route' | 'status'>;

/**
 * Gives each request an id, one log line and one measurement. The line has the route's pattern and the
 * client's address, and never a query or a body.
 * @param keep hears of each as well, once it has its response
 */
export function logRequest(
  logger: Logger,
  durations: RequestDurations,
  readClientAddress: ReadClientAddress,
  keep: (ctx: Context & { state: RequestState }, durationMs: number) => void = () => {},
): Middleware<RequestState> {
  return async (ctx, next) => {
    const startedAt = performance.now();
    ctx.state.requestId = newId('req');
    ctx.state.authenticatedAtMs = 0;
    ctx.state.logFields = {};
    ctx.state.clientAddress = readClientAddress(ctx.req);
    ctx.set('Request-Id', ctx.state.requestId);
    await asPartOf({ requestId: ctx.state.requestId }, next);
    const durationMs = performance.now() - startedAt;
    const route = String((ctx as RouterContext)._matchedRoute ?? 'none');
    const { method, status } = ctx;
    durations.observe({ method: methodLabel(method), route, status: String(status) }, durationMs / 1_000);
    logger.info(
      {
        requestId: ctx.state.requestId,
        method,
        route,
        status,
        durationMs: Math.round(durationMs * 10) / 10,
        clientAddress: ctx.state.clientAddress,
        ...ctx.state.logFields,
      },
      'request',
    );
    keep(ctx, durationMs);
  };
}

/** A client may send any method that Node.js knows, and each would create its own time series. */
export const methodLabel = (method: string): string => (METHODS.has(method) ? method : 'other');
const METHODS = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']);

/**
 * A span for each request from partners and the card network. It always starts a new trace. A caller's
 * `traceparent` is linked, but decides neither the trace's id nor whether it is exported
 * (docs/decisions/traces.md).
 */
export function traceRequest(tracing: Tracing): Middleware<RequestState> {
  return async (ctx, next) => {
    if (!/^\/(v1|network)\//.test(ctx.path)) return next();
    const { method } = ctx;
    const caller = ctx.get('traceparent');
    await tracing.inSpan(
      { name: method, kind: 'SERVER', parent: null, linked: caller === '' ? null : caller },
      async (span) => {
        await next();
        const route = String((ctx as RouterContext)._matchedRoute ?? 'none');
        const { requestId, logFields } = ctx.state;
        span.updateName(`${method} ${route}`);
        span.setAttributes({
          'http.request.method': method,
          'http.route': route,
          'http.response.status_code': ctx.status,
          requestId,
          ...logFields,
        });
        if (ctx.status >= 500) span.setAttribute('error.type', String(ctx.status));
      },
    );
  };
}

/** What the middleware of a request shares. */
export interface RequestState {
  requestId: string;
  /** Where the request comes from; null if a trusted proxy sent something that isn't an address. */
  clientAddress: string | null;
  /** Whose key it has. Only requests to /v1 have one (api/http/identify.ts). */
  caller?: Caller;
  /** What it proves that with. */
  credential: Credential;
  /** When its key was sent to be looked up, by performance.now(); 0 before that. */
  authenticatedAtMs: number;
  /** Why it was refused. */
  error?: ApiError;
  /** Fields of the request's log line in addition to method, route and status. */
  logFields: Record<string, string>;
}

import type { RouterContext } from '@koa/router';
import type { Middleware } from 'koa';
import type { Tracing } from '../../process/tracing.ts';
import type { RequestState } from './log-request.ts';

/**
 * A span for each request from partners and the card network. It always starts a new trace. A caller's `traceparent` is linked,
 * but decides neither the trace's id nor whether it is exported (docs/decisions/traces.md).
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

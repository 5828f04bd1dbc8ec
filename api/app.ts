import Router, { type RouterContext } from '@koa/router';
import Koa from 'koa';
import helmet from 'koa-helmet';
import { Histogram, Registry } from 'prom-client';
import { ApiError } from '../domain/api-error.ts';
import { describeError } from '../domain/describe-error.ts';
import { type GuardDependencies, guard } from './guard.ts';
import { answerErrors } from './middleware/errors.ts';
import { logRequest } from './middleware/log-request.ts';
import { refuseUnreadable } from './middleware/refuse-unreadable.ts';
import { openApiDocument } from './openapi/document.ts';
import type { RequestState } from './request-state.ts';
import { type HealthDependencies, health } from './routes/health.ts';
import { metrics } from './routes/metrics.ts';
import { type CallbackDependencies, networkCallbacks } from './routes/network-callbacks.ts';
import { type NetworkTransactionDependencies, networkTransactions } from './routes/network-transactions.ts';
import { reference } from './routes/reference.ts';
import { createRoutes, type RouteDependencies } from './routes.ts';

export interface AppDependencies
  extends RouteDependencies,
    GuardDependencies,
    CallbackDependencies,
    NetworkTransactionDependencies,
    HealthDependencies {}

/** The whole HTTP surface: /v1 for partners; health, metrics, reference, and what the network sends, beside it. */
export function createApp(dependencies: AppDependencies): Koa<RequestState> {
  const routes = createRoutes(dependencies);
  const registry = new Registry();
  const durations = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Time from the request to its answer',
    labelNames: ['method', 'route', 'status'],
    registers: [registry],
  });

  const v1 = new Router<RequestState>({ prefix: '/v1' });
  for (const route of routes) v1[route.method](route.path, guard(route, dependencies));

  const app = new Koa<RequestState>();
  app.on('error', (error) => {
    dependencies.logger.warn({ error: describeError(error) }, 'an answer could not be sent to its end');
  });
  app.use(logRequest(dependencies.logger, durations));
  app.use(answerErrors(dependencies.logger));
  app.use(refuseUnreadable);
  app.use(
    helmet({
      contentSecurityPolicy: {
        useDefaults: false,
        directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
      },
    }),
  );
  app.use(async (ctx, next) => {
    ctx.set('Cache-Control', 'no-store');
    await next();
  });
  for (const router of [
    v1,
    health(dependencies),
    metrics(registry),
    networkCallbacks(dependencies),
    networkTransactions(dependencies),
    reference(openApiDocument(routes)),
  ]) {
    app.use(router.routes());
  }
  app.use(nothingHere);
  return app;
}

/** 405 with the methods the path has, or 404. */
function nothingHere(ctx: Koa.Context): never {
  const layers = (ctx as unknown as RouterContext).matched ?? [];
  const methods = [...new Set(layers.flatMap((layer) => layer.methods))];
  if (methods.length === 0) throw new ApiError('not_found');
  throw new ApiError('method_not_allowed', { allow: methods.join(', ') });
}

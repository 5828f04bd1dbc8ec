import Router, { type RouterContext } from '@koa/router';
import Koa from 'koa';
import helmet from 'koa-helmet';
import { Histogram } from 'prom-client';
import { ApiError } from '../domain/api-error.ts';
import { health, type ReadinessDependencies, readiness } from '../operations/health.ts';
import type { ProcessMetrics } from '../operations/metrics.ts';
import { describeError } from '../process/describe-error.ts';
import type { Tracing } from '../process/tracing.ts';
import { checkAnswers } from './http/check-answers.ts';
import type { ReadClientAddress } from './http/client-address.ts';
import { answerErrors } from './http/errors.ts';
import { type GuardDependencies, guard } from './http/guard.ts';
import { refuseUnreadable } from './http/http-server.ts';
import { logRequest, type RequestDurations, type RequestState, traceRequest } from './http/log-request.ts';
import {
  type CallbackDependencies,
  type NetworkTransactionDependencies,
  networkCallbacks,
  networkTransactions,
} from './network.ts';
import { openApiDocument } from './openapi/document.ts';
import { reference } from './openapi/reference.ts';
import { createRoutes, DECLARATIONS, type RouteDependencies } from './routes.ts';

interface AppDependencies
  extends RouteDependencies,
    GuardDependencies,
    CallbackDependencies,
    NetworkTransactionDependencies,
    ReadinessDependencies {
  /** Whether the process is shutting down. Readiness then fails, so that load balancers send requests elsewhere. */
  isStopping(): boolean;
  /** Whether readiness and metrics have their own listen address. */
  operationsApart: boolean;
  /** Null if no traces are exported. */
  tracing: Tracing | null;
  metrics: ProcessMetrics;
  readClientAddress: ReadClientAddress;
  /** For tests: whether to check every response against its declaration. */
  checkAnswers: boolean;
}

interface Apps {
  /** /v1 for partners, the reference, and the card network's callbacks and transactions. */
  api: Koa<RequestState>;
  /** Readiness and metrics, if they have their own address; otherwise `api` serves them. */
  operations: Koa<RequestState>;
}

/** The whole HTTP surface. */
export function createApps(dependencies: AppDependencies): Apps {
  const { metrics } = dependencies;
  const durations: RequestDurations = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Time from the request to its response',
    labelNames: ['method', 'route', 'status'],
    registers: [],
  });
  metrics.add([durations]);

  const v1 = new Router<RequestState>({ prefix: '/v1' });
  for (const route of createRoutes(dependencies)) {
    const { method, path } = route.declaration;
    const guarded = guard(route, dependencies);
    v1[method](path, dependencies.checkAnswers ? checkAnswers(route.declaration, guarded) : guarded);
  }
  const ofOperators = [
    readiness(() => (dependencies.isStopping() ? 'is stopping' : dependencies)),
    metrics.router,
  ];
  return {
    api: createApp(dependencies, durations, dependencies.tracing, [
      v1,
      health(),
      ...(dependencies.operationsApart ? [] : ofOperators),
      networkCallbacks(dependencies),
      networkTransactions(dependencies),
      reference(openApiDocument(DECLARATIONS)),
    ]),
    operations: createApp(dependencies, durations, null, [health(), ...ofOperators]),
  };
}

function createApp(
  { logger, readClientAddress }: AppDependencies,
  durations: RequestDurations,
  tracing: Tracing | null,
  routers: Router<RequestState>[],
): Koa<RequestState> {
  const app = new Koa<RequestState>();
  app.on('error', (error) => {
    logger.warn({ error: describeError(error) }, 'could not send a whole response');
  });
  app.use(logRequest(logger, durations, readClientAddress));
  if (tracing !== null) app.use(traceRequest(tracing));
  app.use(answerErrors(logger));
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
  for (const router of routers) app.use(router.routes());
  app.use(nothingHere);
  return app;
}

/** 405 with the methods that the path supports, or 404. */
function nothingHere(ctx: Koa.Context): never {
  const layers = (ctx as unknown as RouterContext).matched ?? [];
  const methods = [...new Set(layers.flatMap((layer) => layer.methods))];
  if (methods.length === 0) throw new ApiError('not_found');
  throw new ApiError('method_not_allowed', { allow: methods.join(', ') });
}

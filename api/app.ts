import Router, { type RouterContext } from '@koa/router';
import Koa from 'koa';
import helmet from 'koa-helmet';
import { Histogram } from 'prom-client';
import { type WorkbenchPageDependencies, workbenchPageRoutes } from '../accounts/workbench-page-routes.ts';
import type { RevealDependencies } from '../cards/secure-details-routes.ts';
import { ApiError } from '../domain/api-error.ts';
import { type NetworkDependencies, networkRoutes } from '../issuers/inbox/routes.ts';
import type { ApiPart } from '../platform/config/api-parts.ts';
import { health, type ReadinessDependencies, readiness } from '../platform/monitoring/health.ts';
import type { ProcessMetrics } from '../platform/monitoring/metrics.ts';
import { describeError } from '../platform/process/describe-error.ts';
import type { Tracing } from '../platform/process/tracing.ts';
import { guide } from './guide/guide.ts';
import { checkResponses } from './http/check-responses.ts';
import type { ReadClientAddress } from './http/client-address.ts';
import { respondWithErrors } from './http/errors.ts';
import { type GuardDependencies, guard } from './http/guard.ts';
import { refuseUnreadable } from './http/http-server.ts';
import { type IdentifyDependencies, identify } from './http/identify.ts';
import { logRequest, type RequestDurations, type RequestState, traceRequest } from './http/log-request.ts';
import { type KeepRequest, keepRequests, type RequestLog } from './http/request-log.ts';
import { showTestClock, type TestClocks } from './http/test-clocks.ts';
import { limitReading, type ResponseLimits } from './http/unsent.ts';
import { openApiDocument } from './openapi/document.ts';
import { reference } from './openapi/reference.ts';
import { DECLARATIONS, partnerRoutes, type RouteDependencies, revealRoutes } from './routes.ts';
import { workbenchFiles } from './workbench-files.ts';

interface AppDependencies
  extends RouteDependencies,
    RevealDependencies,
    IdentifyDependencies,
    GuardDependencies,
    NetworkDependencies,
    WorkbenchPageDependencies,
    ReadinessDependencies {
  /** What this process serves (API_PARTS). */
  parts: readonly ApiPart[];
  /**
   * Whether the process is shutting down. Readiness then fails, so that load balancers send requests
   * elsewhere.
   */
  isStopping(): boolean;
  /** Whether readiness and metrics have their own listen address. */
  operationsApart: boolean;
  /** Null if no traces are exported. */
  tracing: Tracing | null;
  metrics: ProcessMetrics;
  testClocks: TestClocks;
  requestLog: RequestLog;
  readClientAddress: ReadClientAddress;
  responseLimits: ResponseLimits;
  /** For tests: whether to check every response against its declaration. */
  checkResponses: boolean;
}

interface Apps {
  /** /v1 for partners, the reference, the guide, the workbench, and what the card network posts. */
  api: Koa<RequestState>;
  /** Readiness and metrics, if they have their own address; otherwise `api` serves them. */
  operations: Koa<RequestState>;
}

/** It takes a third of a second to make, and is the same for every API of a process. */
const REFERENCE = reference(openApiDocument(DECLARATIONS));

/** The whole HTTP surface. */
export function createApps(dependencies: AppDependencies): Apps {
  const { metrics, parts } = dependencies;
  const durations: RequestDurations = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Time from the request to its response',
    labelNames: ['method', 'route', 'status'],
    registers: [],
  });
  metrics.add([durations]);

  const v1 = new Router<RequestState>({ prefix: '/v1' });
  const routes = [
    ...(parts.includes('partner') ? partnerRoutes(dependencies) : []),
    ...(parts.includes('reveal') ? revealRoutes(dependencies) : []),
  ];
  for (const route of routes) {
    const { method, path } = route.declaration;
    const guarded = guard(route, dependencies);
    v1[method](path, dependencies.checkResponses ? checkResponses(route.declaration, guarded) : guarded);
  }
  const ready = readiness(() => (dependencies.isStopping() ? 'is stopping' : dependencies));
  metrics.add([ready.metric]);
  const ofOperators = [ready.router, metrics.router];
  const keepRequest = keepRequests(
    dependencies.requestLog,
    v1,
    routes.map(({ declaration }) => declaration),
  );
  const api = createApp(dependencies, durations, dependencies.tracing, keepRequest);
  if (parts.includes('partner') || parts.includes('reveal')) api.use(identify(dependencies));
  for (const router of [
    v1,
    health(),
    ...(dependencies.operationsApart ? [] : ofOperators),
    ...(parts.includes('network') ? [networkRoutes(dependencies)] : []),
    ...(parts.includes('partner') ? [REFERENCE, guide()] : []),
    ...(parts.includes('workbench') ? [workbenchPageRoutes(dependencies), workbenchFiles()] : []),
  ])
    api.use(router.routes());
  api.use(notServedHere(dependencies));
  api.use(nothingHere((path) => v1.match(`/v1${path}`, '').path.length > 0));
  const operations = createApp(dependencies, durations, null);
  for (const router of [health(), ...ofOperators]) operations.use(router.routes());
  operations.use(nothingHere(() => false));
  return { api, operations };
}

function createApp(
  { logger, readClientAddress, responseLimits, testClocks }: AppDependencies,
  durations: RequestDurations,
  tracing: Tracing | null,
  keepRequest?: KeepRequest,
): Koa<RequestState> {
  const app = new Koa<RequestState>();
  app.on('error', (error) => {
    logger.warn({ error: describeError(error) }, 'could not send a whole response');
  });
  app.use(async (ctx, next) => {
    await next();
    // A streamed one has limits of its own.
    if (ctx.respond !== false) limitReading(ctx.req, ctx.res, responseLimits);
  });
  app.use(logRequest(logger, durations, readClientAddress, keepRequest));
  if (tracing !== null) app.use(traceRequest(tracing));
  app.use(showTestClock(testClocks));
  app.use(respondWithErrors(logger));
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
  return app;
}

/** Each part's paths. The first that matches decides. */
const PATHS: [RegExp, ApiPart][] = [
  [/^\/v1\/cards\/[^/]+\/secure-details\/?$/i, 'reveal'],
  [/^\/network(\/|$)/i, 'network'],
  [/^\/workbench(\/|$)/i, 'workbench'],
  [/^\/(v1|docs|guide|openapi\.json)(\/|$)/i, 'partner'],
];

/**
 * 404 for the requests of parts that this process does not serve. None should arrive, since whatever is in
 * front of the processes routes by path: so the log says that it doesn't.
 */
function notServedHere({
  parts,
  logger,
}: Pick<AppDependencies, 'parts' | 'logger'>): Koa.Middleware<RequestState> {
  return (ctx, next) => {
    const part = PATHS.find(([paths]) => paths.test(ctx.path))?.[1];
    if (part === undefined || parts.includes(part)) return next();
    logger.warn(
      { requestId: ctx.state.requestId, part },
      'a request for a part of the API that this process does not serve: send it to one whose API_PARTS includes it',
    );
    throw new ApiError('not_found');
  };
}

/** 405 with the methods that the path supports, or 404. @param isUnderV1 whether the path exists below /v1 */
function nothingHere(isUnderV1: (path: string) => boolean): Koa.Middleware {
  return (ctx) => {
    const layers = (ctx as unknown as RouterContext).matched ?? [];
    const methods = [...new Set(layers.flatMap((layer) => layer.methods))];
    if (methods.length > 0) throw new ApiError('method_not_allowed', { allow: methods.join(', ') });
    if (!isUnderV1(ctx.path)) throw new ApiError('not_found');
    throw new ApiError('not_found', {
      message: `This path does not exist: every path of the API begins with /v1. Send the request to /v1${ctx.path}.`,
    });
  };
}

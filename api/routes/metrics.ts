import Router from '@koa/router';
import { collectDefaultMetrics, type Registry } from 'prom-client';
import type { RequestState } from '../request-state.ts';

/** `GET /metrics` for Prometheus: requests by route and status, and the process itself. */
export function metrics(registry: Registry): Router<RequestState> {
  collectDefaultMetrics({ register: registry });
  const router = new Router<RequestState>();
  router.get('/metrics', async (ctx) => {
    ctx.type = registry.contentType;
    ctx.body = await registry.metrics();
  });
  return router;
}

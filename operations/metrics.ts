import Router from '@koa/router';
import { collectDefaultMetrics, type Metric, Registry } from 'prom-client';
import { atMostOften } from './at-most-often.ts';

/** Whoever asks more often gets the same answer again, so that asking costs little. */
const COMPUTED_EVERY_MS = 1_000;

/** A process' metrics: those of Node.js itself, and the given ones. */
export function createRegistry(metrics: readonly Metric[]): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const metric of metrics) registry.registerMetric(metric);
  return registry;
}

/** `GET /metrics`, for Prometheus. */
export function metrics(registry: Registry): Router {
  const compute = atMostOften(COMPUTED_EVERY_MS, () => registry.metrics());
  const router = new Router();
  router.get('/metrics', async (ctx) => {
    ctx.type = registry.contentType;
    ctx.body = await compute();
  });
  return router;
}

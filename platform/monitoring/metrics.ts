import Router from '@koa/router';
import { collectDefaultMetrics, type Metric, Registry } from 'prom-client';
import { atMostOften } from './at-most-often.ts';
import { buildInfo } from './process-metrics.ts';

/** More frequent scrapes get the cached result, so that they cost little. */
const COMPUTED_EVERY_MS = 1_000;

export interface ProcessMetrics {
  add(metrics: readonly Metric[]): void;
  /** `GET /metrics`, for Prometheus. */
  router: Router;
}

/**
 * The metrics of a process: those of Node.js, its build, and any that are added.
 * @param readMore returns metrics collected elsewhere, as text; their names must not clash with the others
 */
export function createProcessMetrics(readMore: () => Promise<string>): ProcessMetrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const add = (metrics: readonly Metric[]) => {
    for (const metric of metrics) registry.registerMetric(metric);
  };
  add([buildInfo()]);

  const compute = atMostOften(COMPUTED_EVERY_MS, async () => {
    const [own, more] = await Promise.all([registry.metrics(), readMore()]);
    return own + more;
  });
  const router = new Router();
  router.get('/metrics', async (ctx) => {
    ctx.type = registry.contentType;
    ctx.body = await compute();
  });
  return { add, router };
}

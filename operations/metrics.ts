import Router from '@koa/router';
import { collectDefaultMetrics, type Metric, Registry } from 'prom-client';
import { atMostOften } from './at-most-often.ts';
import { buildInfo } from './process-metrics.ts';

/** Whoever asks more often gets the same answer again, so that asking costs little. */
const COMPUTED_EVERY_MS = 1_000;

export interface ProcessMetrics {
  add(metrics: readonly Metric[]): void;
  /** `GET /metrics`, for Prometheus. */
  router: Router;
}

/**
 * The metrics of a process: those of Node.js and its build, and what is added.
 * @param readMore metrics that something else counts, as text; their names are not among the others
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

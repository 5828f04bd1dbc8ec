import { readFileSync } from 'node:fs';
import { Counter, Gauge, type Metric } from 'prom-client';
import type { PlacesUsage, PoolUsage } from '../db/pool.ts';

const PACKAGE: { version: string } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
);

/** The build that this process runs. */
export function buildInfo(): Metric {
  const info = new Gauge({
    name: 'card_issuing_build_info',
    help: '1, with the version of the service and of Node.js',
    labelNames: ['version', 'node_version'],
    registers: [],
  });
  info.set({ version: PACKAGE.version, node_version: process.versions.node }, 1);
  return info;
}

/**
 * How this process uses its PostgreSQL connections: those shared by accounts, and those reserved for the
 * service.
 */
export function poolMetrics(poolUsage: PoolUsage): Metric[] {
  const shares = () =>
    Object.entries(poolUsage).flatMap(([share, usage]) => (usage ? [{ share, usage }] : []));
  const gauge = (name: string, help: string, pick: (usage: PlacesUsage) => number) =>
    new Gauge({
      name,
      help: `${help}, by share`,
      labelNames: ['share'],
      registers: [],
      collect() {
        for (const { share, usage } of shares()) this.set({ share }, pick(usage));
      },
    });
  return [
    gauge('database_pool_connections', 'The limit of connections to PostgreSQL', ({ places }) => places),
    gauge('database_pool_connections_in_use', 'Connections in use', ({ held }) => held),
    gauge('database_pool_requests_waiting', 'Tasks that are waiting for a connection', (u) => u.waiting),
    new Counter({
      name: 'database_pool_timeouts_total',
      help: 'Tasks that got no connection in time, by share',
      labelNames: ['share'],
      registers: [],
      collect() {
        this.reset();
        for (const { share, usage } of shares()) this.inc({ share }, usage.givenUp);
      },
    }),
  ];
}

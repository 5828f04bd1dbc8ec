import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';

/** One of the requests that are sent over and over in turn. `$unique` in a body is replaced by a new value each time. */
export interface FloodRequest {
  method: 'GET' | 'POST';
  path: string;
  body?: string;
}

export interface FloodOrder {
  origins: string[];
  key: string;
  /** Requests per second to each origin, however long the answers take. */
  perSecond: number;
  requests: FloodRequest[];
}

/**
 * One account's flood, from a process of its own. It begins with the parent's order and ends with the parent's next message.
 * Then it sends the parent how often each status was answered.
 */
const statuses: Record<string, number> = {};
const underWay = new Set<Promise<void>>();
let stopped = false;
process.on('message', async (message: FloodOrder | 'stop') => {
  if (message !== 'stop') {
    flood(message);
    return;
  }
  stopped = true;
  while (underWay.size > 0) await Promise.all(underWay);
  process.send?.(statuses);
});
process.on('disconnect', () => process.exit());

async function flood({ origins, key, perSecond, requests }: FloodOrder): Promise<void> {
  const pools = origins.map((origin) => new Pool(origin, { connections: 300 }));
  const startedAt = performance.now();
  for (let sent = 0; !stopped; ) {
    for (const due = ((performance.now() - startedAt) / 1_000) * perSecond; sent < due && !stopped; sent++) {
      for (const pool of pools) {
        const answered = ask(pool, key, requests[sent % requests.length] as FloodRequest);
        underWay.add(answered);
        answered.finally(() => underWay.delete(answered));
      }
    }
    await sleep(5);
  }
}

async function ask(pool: Pool, key: string, { method, path, body }: FloodRequest): Promise<void> {
  const answer = await pool.request({
    method,
    path: `/v1${path}`,
    headers: {
      authorization: `Bearer ${key}`,
      'idempotency-key': randomUUID(),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    body: body?.replace('$unique', randomUUID()) ?? null,
  });
  await answer.body.dump();
  statuses[answer.statusCode] = (statuses[answer.statusCode] ?? 0) + 1;
}

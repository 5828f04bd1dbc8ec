import { randomUUID } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';

/**
 * One of the requests that are sent over and over in turn. `$unique` in a body is replaced by a new value
 * each time.
 */
export interface FloodRequest {
  method: 'GET' | 'POST';
  path: string;
  body?: string;
}

export interface FloodOrder {
  origins: string[];
  key: string;
  /**
   * `steady` sends `count` requests per second to each origin, however long the answers take. `clients`: that
   * many clients of each origin send one after the other. `readers`: that many connections to each origin ask
   * once, and read nothing but the beginning of the answer.
   */
  kind: 'steady' | 'clients' | 'readers';
  count: number;
  requests: FloodRequest[];
}

/**
 * One account's flood, from a process of its own. It begins with the parent's order and ends with the
 * parent's next message. Then it sends the parent how often each status was answered.
 */
const statuses: Record<string, number> = {};
const underWay = new Set<Promise<void>>();
let stopped = false;
process.on('message', async (message: FloodOrder | 'stop') => {
  if (message !== 'stop') {
    FLOODS[message.kind](message);
    return;
  }
  stopped = true;
  while (underWay.size > 0) await Promise.all(underWay);
  process.send?.(statuses);
});
process.on('disconnect', () => process.exit());

const FLOODS = { steady: floodSteadily, clients: floodInTurn, readers: holdAnswers };

async function floodSteadily({ origins, key, count: perSecond, requests }: FloodOrder): Promise<void> {
  const pools = origins.map((origin) => new Pool(origin, { connections: 300 }));
  const startedAt = performance.now();
  for (let sent = 0; !stopped; ) {
    for (const due = ((performance.now() - startedAt) / 1_000) * perSecond; sent < due && !stopped; sent++) {
      for (const pool of pools) follow(ask(pool, key, requests[sent % requests.length] as FloodRequest));
    }
    await sleep(5);
  }
}

function floodInTurn({ origins, key, count: clients, requests }: FloodOrder): void {
  for (const origin of origins) {
    const pool = new Pool(origin, { connections: clients });
    for (let client = 0; client < clients; client++) {
      const send = async () => {
        for (let sent = client; !stopped; sent++)
          await ask(pool, key, requests[sent % requests.length] as FloodRequest);
      };
      follow(send());
    }
  }
}

function holdAnswers({ origins, key, count: readers, requests: [request] }: FloodOrder): void {
  const sockets: Socket[] = [];
  for (const origin of origins) {
    const { hostname: host, port } = new URL(origin);
    for (let reader = 0; reader < readers; reader++) {
      const socket = connect({
        host,
        port: Number(port),
        onread: {
          buffer: Buffer.alloc(300),
          callback: (_, bytes) => {
            count(Buffer.from(bytes).toString('latin1').split(' ')[1] ?? 'none');
            // No more is read.
            return false;
          },
        },
      });
      socket.on('error', () => {});
      socket.write(
        `GET /v1${request?.path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${key}\r\n\r\n`,
      );
      sockets.push(socket);
    }
  }
  const untilStopped = async () => {
    while (!stopped) await sleep(50);
    for (const socket of sockets) socket.destroy();
  };
  follow(untilStopped());
}

function follow(work: Promise<void>): void {
  underWay.add(work);
  work.finally(() => underWay.delete(work));
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
  count(answer.statusCode);
}

function count(status: number | string): void {
  statuses[status] = (statuses[status] ?? 0) + 1;
}

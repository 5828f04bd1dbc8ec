import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { monotonicMs } from '../support/measure.ts';

/**
 * A receiver of webhooks in a process of its own. `/ok/…` answers 200, `/fail/…` 500, `/hang/…` never. It
 * sends its port to the parent and, on each message, when each event was first received: [id, monotonic
 * milliseconds][]. With `?of=5`, an event is received when it has come five times.
 */
let received = new Map<string, number>();
let times = new Map<string, number>();
const server = createServer((request, response) => {
  const id = request.headers['x-service-event-id'] as string;
  const came = (times.get(id) ?? 0) + 1;
  times.set(id, came);
  const [, wanted = '1'] = request.url?.split('?of=') ?? [];
  if (came === Number(wanted)) received.set(id, monotonicMs());
  request.resume();
  if (request.url?.startsWith('/hang/')) return;
  request.on('end', () => response.writeHead(request.url?.startsWith('/fail/') ? 500 : 200).end());
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.on('message', (command) => {
  process.send?.({ received: [...received] });
  if (command !== 'forget') return;
  received = new Map();
  times = new Map();
});
process.on('disconnect', () => process.exit());

import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

interface Received {
  headers: IncomingHttpHeaders;
  body: string;
  /** The event's id, by the body. */
  id: string;
  at: number;
}

/** What a receiver does with a request, by its number from 0. */
type Behaviour = (request: Received, response: ServerResponse, number: number) => void;

export const answer =
  (status: number): Behaviour =>
  (_request, response) =>
    response.writeHead(status).end();

/** A partner's webhook endpoint on loopback, which answers 200 by default. */
export async function startReceiver() {
  const received: Received[] = [];
  let behaviour: Behaviour = answer(200);
  const server = createServer(async (request: IncomingMessage, response) => {
    const body = (await buffer(request)).toString();
    const seen = { headers: request.headers, body, id: JSON.parse(body).id, at: Date.now() };
    received.push(seen);
    behaviour(seen, response, received.length - 1);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const stop = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
    attempts: (id: string) => received.filter((request) => request.id === id),
    behave: (next: Behaviour) => {
      behaviour = next;
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { webhooks } from '../../client/webhooks.ts';
import { Difference } from '../model/difference.ts';

/** The webhook endpoints of all partners. */
export interface Receivers {
  /** A new partner's URL. */
  urlOf(partnerId: string): string;
  /** Sets the secret that signs the partner's events. Until then, they are refused. */
  setSecret(partnerId: string, secret: string): void;
  /** The bodies of the accepted events, by id. */
  accepted: Map<string, string>;
  /** The number of requests, including refused ones. */
  requests(): number;
  differences: Difference[];
  stop(): Promise<void>;
}

/** How many of a hundred requests are refused, cut off, or left unanswered until the service gives up. */
const REFUSED = 8;
const CUT_OFF = 4;
const LEFT = 2;

/** Receivers that fail sometimes. Before they accept an event, they verify it as partners do, with the client's code. */
export async function startReceivers(): Promise<Receivers> {
  const secrets = new Map<string, string>();
  const accepted = new Map<string, string>();
  const differences: Difference[] = [];
  let requests = 0;
  const server = createServer(async (request, response) => {
    const body = (await buffer(request)).toString();
    const luck = Math.random() * 100;
    requests++;
    const secret = secrets.get((request.url ?? '').slice(1));
    if (luck < CUT_OFF) return request.destroy();
    if (luck < CUT_OFF + LEFT) return;
    if (luck < CUT_OFF + LEFT + REFUSED || secret === undefined) return response.writeHead(503).end();
    try {
      const { id } = webhooks.verify(body, request.headers, secret);
      const before = accepted.get(id);
      if (before !== undefined && before !== body)
        differences.push(new Difference(`${id} was sent with two bodies`, [before, body]));
      if (request.headers['x-service-event-id'] !== id)
        differences.push(new Difference(`${id} was sent as ${request.headers['x-service-event-id']}`));
      accepted.set(id, body);
    } catch (error) {
      differences.push(new Difference(`a webhook could not be verified: ${error}`, [body]));
    }
    return response.writeHead(200).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    urlOf: (partnerId) => `http://127.0.0.1:${port}/${partnerId}`,
    setSecret: (partnerId, secret) => void secrets.set(partnerId, secret),
    accepted,
    requests: () => requests,
    differences,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

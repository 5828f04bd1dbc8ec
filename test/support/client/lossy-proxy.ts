import { request } from 'node:http';
import { type LoopbackServer, listenOnLoopback } from '../sockets.ts';

export interface LossyProxy extends LoopbackServer {
  /** How many responses have been lost. */
  lost(): number;
}

/** Passes requests on to the API, and loses its first responses: what was asked is done, and nobody learns of it. */
export async function startLossyProxy(origin: string, responsesToLose: number): Promise<LossyProxy> {
  let lost = 0;
  const server = await listenOnLoopback((incoming, outgoing) => {
    const { method, url, headers } = incoming;
    const onward = request(`${origin}${url}`, { ...(method && { method }), headers }, (response) => {
      if (lost < responsesToLose) {
        lost += 1;
        response.resume().on('end', () => incoming.socket.destroy());
      } else {
        response.pipe(outgoing.writeHead(response.statusCode ?? 0, response.headers));
      }
    });
    incoming.pipe(onward);
  });
  return { ...server, lost: () => lost };
}

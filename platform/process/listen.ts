import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { StartRefused } from './run-process.ts';

export interface HttpAddress {
  host: string;
  port: number;
}

/** How long the requests in progress may take when the server stops. */
const MAX_STOP_MS = 10_000;

export interface ListeningServer {
  /** Its origin, without a path. */
  url: string;
  /**
   * Closes each connection after its next response, which says so (`Connection: close`). New connections are
   * still accepted.
   */
  drain(): void;
  /** Accepts no more connections and finishes the requests in progress, within 10 s. */
  stop(): Promise<void>;
}

/**
 * Makes a server listen.
 * @param variable the environment variable that sets the port
 * @throws StartRefused if the address is not available
 */
export async function listenOnPort(
  server: Server,
  { host, port }: HttpAddress,
  variable: string,
): Promise<ListeningServer> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(refusal(error, { host, port }, variable)));
    server.listen(port, host, resolve);
  });
  const { port: taken } = server.address() as AddressInfo;
  const inProgress = new Set<ServerResponse>();
  let isDraining = false;
  const follow = (_: IncomingMessage, response: ServerResponse) => {
    if (isDraining) response.shouldKeepAlive = false;
    inProgress.add(response);
    response.once('close', () => inProgress.delete(response));
  };
  server.on('request', follow);
  server.on('checkExpectation', follow);
  const drain = () => {
    isDraining = true;
    for (const response of inProgress) response.shouldKeepAlive = false;
  };
  return {
    drain,
    url: `http://${host.includes(':') ? `[${host}]` : host}:${taken}`,
    stop: async () => {
      drain();
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeIdleConnections();
      const impatience = setTimeout(() => server.closeAllConnections(), MAX_STOP_MS);
      await closed;
      clearTimeout(impatience);
    },
  };
}

function refusal(error: NodeJS.ErrnoException, { host, port }: HttpAddress, variable: string): Error {
  if (error.code === 'EADDRINUSE') {
    return new StartRefused(
      `Port ${port} of ${host} is taken: stop what listens there, or set ${variable} to another port.`,
    );
  }
  if (error.code === 'EADDRNOTAVAIL' || error.code === 'EACCES' || error.code === 'ENOTFOUND') {
    const host_ = variable.replace(/PORT$/, 'HOST');
    return new StartRefused(
      `Can't listen on ${host}:${port} (${error.code}): correct ${host_} or ${variable}.`,
    );
  }
  return error;
}

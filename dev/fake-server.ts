import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

interface FakeServer {
  url: string;
  stop(): Promise<void>;
}

/** Serves a fake of the outside world on loopback. @param port 0 for any free one */
export async function startFakeServer(
  port: number,
  serve: (request: IncomingMessage, body: string, response: ServerResponse) => Promise<void>,
): Promise<FakeServer> {
  const server = createServer(async (request, response) => {
    try {
      await serve(request, await text(request), response);
    } catch (error) {
      // The caller is gone, or the fake has a bug.
      if (response.headersSent) response.destroy();
      else response.writeHead(500).end(String(error));
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve));
      // Includes connections whose call hangs.
      server.closeAllConnections();
      await closed;
    },
  };
}

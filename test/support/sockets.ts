import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener, request } from 'node:http';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A bare HTTP server on a free port, for tests that play one side of a conversation. */
export async function listenOnLoopback(listener: RequestListener) {
  const server = createHttpServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

export type LoopbackServer = Awaited<ReturnType<typeof listenOnLoopback>>;

/** Stands between a client and a server, so that the server can go away and come back. */
export async function startTcpProxy(target: string) {
  const sockets = new Set<Socket>();
  const { hostname, port } = new URL(`tcp://${target}`);
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one);
      one.pipe(other);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const own = (server.address() as AddressInfo).port;
  return {
    address: `127.0.0.1:${own}`,
    /** Refuses connections, and closes the open ones. */
    async cut() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
    async restore() {
      server.listen(own, '127.0.0.1');
      await once(server, 'listening');
    },
  };
}

export type TcpProxy = Awaited<ReturnType<typeof startTcpProxy>>;

/** What to watch for: bytes from the client or the server that contain this text. */
export interface Watched {
  from: 'client' | 'server';
  text: string;
}

/**
 * Stands between a client and a server and passes on what they say until it sees what it watches for, if anything. Then
 * it calls `onSeen`, and passes on neither that nor anything after it.
 */
export async function startWatchingProxy(target: string, watched: Watched | undefined, onSeen: () => void) {
  const [host, port] = target.split(':');
  const sockets = new Set<Socket>();
  let seen = false;

  function pass(source: Socket, sink: Socket, side: Watched['from']): void {
    sockets.add(source);
    source.on('data', (bytes) => {
      if (!seen && side === watched?.from && bytes.includes(watched.text)) {
        seen = true;
        onSeen();
      }
      if (!seen) sink.write(bytes);
    });
    // Either side may be killed at any moment; the other one learns of it by the end of its connection.
    source.on('error', () => sink.destroy());
    source.on('close', () => sink.destroy());
  }

  const server = createServer((client) => {
    const upstream = connect(Number(port), host);
    pass(client, upstream, 'client');
    pass(upstream, client, 'server');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Passes requests on to the API and loses its first responses: the API did what was asked, but the client never knows. */
export async function startLossyProxy(origin: string, responsesToLose: number) {
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
  /** With how many responses it has lost. */
  return { ...server, lost: () => lost };
}

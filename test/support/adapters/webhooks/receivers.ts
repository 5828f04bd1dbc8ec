import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import type { TlsOptions } from 'node:tls';

export const BODY = '{"id":"evt_1","data":{"name":"Ødegård"}}';

export interface Receiver extends AsyncDisposable {
  port: number;
  /** Connections so far, and those still open. */
  connections: number;
  open: Set<Socket>;
  /** What to do with a connection before anything came over it. */
  onConnection(socket: Socket): unknown;
  close(): Promise<void>;
}

/** A web server of Node's own on a free loopback port; over TLS where a certificate is given. */
export function startReceiver(listener: RequestListener, tls?: TlsOptions): Promise<Receiver> {
  const server = tls === undefined ? createHttpServer(listener) : createHttpsServer(tls, listener);
  return listen(server, '127.0.0.1');
}

export const answering =
  (status: number, text = ''): RequestListener =>
  (request, response) =>
    request.resume().once('end', () => response.writeHead(status).end(text));

/** Answers with bytes of one's own. @param act gets the number of the request, counted from 1 over all connections */
export function startRawReceiver(act: (socket: Socket, request: number) => void): Promise<Receiver> {
  let requests = 0;
  const server = createServer((socket) => {
    let heard = '';
    // The client may be gone in the middle of what the receiver says.
    socket.on('error', () => socket.destroy());
    socket.on('data', (data) => {
      heard += data;
      if (!heard.endsWith(BODY)) return;
      heard = '';
      requests += 1;
      act(socket, requests);
    });
  });
  return listen(server, '127.0.0.1');
}

/** Counts who connects, on every address of this machine; nobody should. */
export async function startCanary(): Promise<Receiver & { assertUntouched(): Promise<void> }> {
  const canary = await listen(createServer((socket) => socket.on('error', () => socket.destroy())));
  let ours = 0;
  return Object.assign(canary, {
    /** Connections are taken in the order they came, so whatever came before this one is counted when it is. */
    assertUntouched: async () => {
      const before = canary.connections;
      const socket = connect(canary.port, '127.0.0.1');
      await once(socket, 'connect');
      ours += 1;
      while (canary.connections === before) await new Promise((resolve) => setImmediate(resolve));
      socket.destroy();
      if (canary.connections !== ours) throw new Error('somebody connected to the canary');
    },
  });
}

async function listen(server: Server, host?: string): Promise<Receiver> {
  server.listen(0, host);
  await once(server, 'listening');
  const open = new Set<Socket>();
  const close = async () => {
    for (const socket of open) socket.destroy();
    server.close();
    await once(server, 'close');
  };
  const receiver: Receiver = {
    port: (server.address() as AddressInfo).port,
    connections: 0,
    open,
    onConnection: () => {},
    close,
    [Symbol.asyncDispose]: close,
  };
  server.on('connection', (socket) => {
    receiver.connections += 1;
    open.add(socket);
    receiver.onConnection(socket);
    socket.once('close', () => open.delete(socket));
  });
  return receiver;
}

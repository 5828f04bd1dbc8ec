import { randomInt } from 'node:crypto';
import { createServer, type Server } from 'node:net';

/** Below the ports of outgoing connections, and Temporal stores ports in a column that ends at 32,767. */
const LOWEST = 20_000;
const PORTS = 32_767 - LOWEST + 1;

// Each process walks through the ports from a place of its own: two that look at once find different ones.
let walked = randomInt(PORTS);

/** A TCP port on loopback that nothing listens on right now. */
export async function freePort(): Promise<number> {
  const [port] = await freePorts(1);
  return port as number;
}

/** Several different free ports: each is held until the last is found. */
export async function freePorts(count: number): Promise<number[]> {
  const held = new Map<number, Server>();
  while (held.size < count) {
    const port = LOWEST + (walked++ % PORTS);
    const server = await listen(port);
    if (server !== undefined) held.set(port, server);
  }
  await Promise.all([...held.values()].map(close));
  return [...held.keys()];
}

/** Whether a server could listen on this loopback port right now. */
export async function isPortFree(port: number): Promise<boolean> {
  const server = await listen(port);
  if (server === undefined) return false;
  await close(server);
  return true;
}

function listen(port: number): Promise<Server | undefined> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(undefined);
      else reject(error);
    });
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}

import { Client } from 'undici';
import { type NetworkAccess, openCheckedSocket } from './checked-socket.ts';
import { connectFailure } from './delivery-result.ts';
import type { WebhookTarget } from './webhook-url.ts';

/** How long an idle connection is kept, unless the receiver says otherwise. */
const IDLE_MS = 10_000;
const MAX_IDLE_MS = 30_000;
/** A connection is replaced after this time, so that we notice when a receiver moves to another address. */
const MAX_LIFE_MS = 300_000;
const LARGEST_HEADERS_BYTES = 16_384;

/**
 * The connections of one endpoint: one for each attempt in progress, up to a limit. They are kept for later
 * attempts.
 */
export interface EndpointConnections {
  /** A connection that no other attempt is using. Waits if the limit is reached. */
  acquire(): Promise<EndpointConnection>;
  /** Replaces a broken connection with a new one. */
  replace(connection: EndpointConnection): EndpointConnection;
  release(connection: EndpointConnection, outcome: { reusable: boolean }): void;
  /** Closes the idle connections, and the others when they are released. */
  retire(): void;
}

/** At most one connection to a receiver, which its first request opens. */
export interface EndpointConnection {
  readonly client: Client;
  readonly createdAtMs: number;
  /** The deadline of the current attempt, which includes the time to connect. */
  deadlineAtMs: number;
  /** Whether an earlier attempt used it. The receiver may have closed it since. */
  used: boolean;
  destroy(): void;
}

export function createEndpointConnections(
  target: WebhookTarget,
  network: NetworkAccess,
  limit: number,
): EndpointConnections {
  const idle: EndpointConnection[] = [];
  const waiting: ((connection: EndpointConnection) => void)[] = [];
  let busy = 0;
  let retired = false;

  const open = () => {
    const connection = createConnection(target, network);
    // The receiver closed it, or it was idle for too long. An attempt in progress gets its own error.
    connection.client.on('disconnect', () => {
      const index = idle.indexOf(connection);
      if (index === -1) return;
      idle.splice(index, 1);
      connection.destroy();
    });
    return connection;
  };

  return {
    acquire: async () => {
      const kept = idle.pop();
      if (kept === undefined && busy >= limit) return new Promise((resolve) => waiting.push(resolve));
      busy += 1;
      return kept ?? open();
    },
    replace: (connection) => {
      connection.destroy();
      return open();
    },
    release: (connection, { reusable }) => {
      const keep = reusable && !retired && performance.now() - connection.createdAtMs < MAX_LIFE_MS;
      if (keep) connection.used = true;
      else connection.destroy();
      const next = waiting.shift();
      if (next !== undefined) return next(keep ? connection : open());
      busy -= 1;
      if (keep) idle.push(connection);
    },
    retire: () => {
      retired = true;
      for (const connection of idle.splice(0)) connection.destroy();
    },
  };
}

/** undici's client of one connection, which only {@link openCheckedSocket} opens. */
function createConnection(target: WebhookTarget, network: NetworkAccess): EndpointConnection {
  const abandoned = new AbortController();
  const client = new Client(target.origin, {
    connect: (_options, callback) => {
      connection.used = false;
      const { deadlineAtMs } = connection;
      openCheckedSocket(target, network, { deadlineAtMs, signal: abandoned.signal }).then(
        (socket) => callback(null, socket),
        (error) => callback(connectFailure(error), null),
      );
    },
    allowH2: false,
    pipelining: 1,
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: MAX_IDLE_MS,
    maxHeaderSize: LARGEST_HEADERS_BYTES,
    // One deadline covers the whole attempt.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const connection: EndpointConnection = {
    client,
    createdAtMs: performance.now(),
    deadlineAtMs: 0,
    used: false,
    destroy: () => {
      abandoned.abort();
      client.destroy();
    },
  };
  return connection;
}

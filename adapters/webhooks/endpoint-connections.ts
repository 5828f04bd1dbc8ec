import type { Connection } from './connection.ts';

/** A connection is replaced after this, so that a receiver that moved to another address is found there. */
const LONGEST_LIFE_MS = 300_000;

/** The connections of one endpoint: as many as attempts are under way, up to a limit, kept for the next ones. */
export interface EndpointConnections {
  /** One that nobody else has; waits where the limit is reached. */
  acquire(): Promise<Connection>;
  /** A new one in the place of one that is no good. */
  replace(connection: Connection): Connection;
  release(connection: Connection, outcome: { reusable: boolean }): void;
  /** From now on nothing is kept. */
  retire(): void;
}

export function createEndpointConnections(create: () => Connection, limit: number): EndpointConnections {
  const idle: Connection[] = [];
  const waiting: ((connection: Connection) => void)[] = [];
  let busy = 0;
  let retired = false;

  const open = () => {
    const connection = create();
    // Closed by the receiver or after its idle time. An attempt that has it is told by its own answer.
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
      const keep = reusable && !retired && performance.now() - connection.createdAtMs < LONGEST_LIFE_MS;
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

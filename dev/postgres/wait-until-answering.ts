import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { endedAtOnce } from '../process/last-words.ts';
import type { Child } from '../process/start-child.ts';

const STARTING_UP = '57P03';
/** `undefined` is pg's own time limit on connecting. */
const NOT_YET = new Set([STARTING_UP, 'ECONNREFUSED', 'ECONNRESET', undefined]);

/** Returns once the server takes connections, however long its recovery takes; fails when it ends or refuses us. */
export async function waitUntilAnswering(url: string, server: Child): Promise<void> {
  let ended: string | undefined;
  void server.exited.then((how) => {
    ended = how;
  });
  while (ended === undefined) {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
    try {
      await client.connect();
      await client.end();
      return;
    } catch (error) {
      const { code } = error as { code?: string };
      if (!NOT_YET.has(code)) {
        await server.stop([{ signal: 'SIGINT', graceMs: 5_000 }]);
        throw error;
      }
      await delay(50);
    }
  }
  throw endedAtOnce(server, ended);
}

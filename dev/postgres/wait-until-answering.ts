import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { endedAtOnce } from '../process/last-words.ts';
import type { Child } from '../process/start-child.ts';

const STARTING_UP = '57P03';
/** `undefined` is pg's own time limit on connecting. */
const NOT_YET = new Set([STARTING_UP, 'ECONNREFUSED', 'ECONNRESET', undefined]);

/** Returns once the server takes connections, however long its recovery takes; fails when it ends or refuses us. */
export async function waitUntilAnswering(url: string, dataDir: string, server: Child): Promise<void> {
  let ended: string | undefined;
  void server.exited.then((how) => {
    ended = how;
  });
  while (ended === undefined) {
    try {
      if (await answersFrom(url, dataDir)) return;
    } catch (error) {
      if (!NOT_YET.has((error as { code?: string }).code)) {
        await server.stop([{ signal: 'SIGINT', graceMs: 5_000 }]);
        throw error;
      }
    }
    await delay(50);
  }
  throw endedAtOnce(server, ended);
}

/** Whether it is our server that answers there, not one that had the port before. */
async function answersFrom(url: string, dataDir: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  await client.connect();
  try {
    const { rows } = await client.query('SHOW data_directory');
    return rows[0].data_directory === dataDir;
  } finally {
    await client.end();
  }
}

import { readFile } from 'node:fs/promises';
import pg from 'pg';

/** Where there is no pgbench: the same statement in a loop of `pg` clients with nothing around them. */
export async function runBareClients(options: {
  databaseUrl: string;
  clients: number;
  seconds: number;
}): Promise<number> {
  const text = await readFile(new URL('./apply-one.sql', import.meta.url), 'utf8');
  const clients = Array.from(
    { length: options.clients },
    () => new pg.Client({ connectionString: options.databaseUrl, options: '-c role=card_issuing_app' }),
  );
  for (const client of clients) {
    await client.connect();
    await client.query({ name: 'apply-one', text });
  }
  const startedAt = performance.now();
  let calls = 0;
  await Promise.all(
    clients.map(async (client) => {
      while (performance.now() - startedAt < options.seconds * 1_000) {
        await client.query({ name: 'apply-one', text });
        calls++;
      }
    }),
  );
  const seconds = (performance.now() - startedAt) / 1_000;
  await Promise.all(clients.map((client) => client.end()));
  return calls / seconds;
}

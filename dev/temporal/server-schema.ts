import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type pg from 'pg';
import { urlOf } from '../postgres/logins.ts';
import { withClient } from '../postgres/with-client.ts';
import { childEnvironment } from '../process/child.ts';
import { DEFAULT_STORE, VISIBILITY_STORE } from './server-config.ts';

const STORES = [
  { database: DEFAULT_STORE, schema: 'postgresql/v12/temporal' },
  { database: VISIBILITY_STORE, schema: 'postgresql/v12/visibility' },
];

/**
 * Creates Temporal's two databases, or updates them to the server's version. A database gets its final name only
 * when it is complete, so a start that was killed half way is simply repeated.
 */
export async function createSchema(sqlTool: string, postgresUrl: string): Promise<void> {
  await withClient(postgresUrl, async (client) => {
    for (const { database, schema } of STORES) {
      const update = ['update-schema', '--schema-name', schema];
      if (await exists(client, database)) {
        await run(sqlTool, postgresUrl, database, update);
        continue;
      }
      const unfinished = `${database}_unfinished`;
      await client.query(`DROP DATABASE IF EXISTS ${unfinished} WITH (FORCE)`);
      await client.query(`CREATE DATABASE ${unfinished}`);
      await run(sqlTool, postgresUrl, unfinished, ['setup-schema', '-v', '0.0']);
      await run(sqlTool, postgresUrl, unfinished, update);
      await renameInside(postgresUrl, unfinished, database);
      await client.query(`ALTER DATABASE ${unfinished} RENAME TO ${database}`);
    }
  });
}

/** Temporal stores the schema's version under the database's name. */
async function renameInside(postgresUrl: string, unfinished: string, database: string): Promise<void> {
  await withClient(urlOf(postgresUrl, unfinished), async (client) => {
    await client.query('UPDATE schema_version SET db_name = $1', [database]);
  });
}

async function exists(client: pg.Client, database: string): Promise<boolean> {
  const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [database]);
  return rowCount === 1;
}

async function run(sqlTool: string, postgresUrl: string, database: string, args: string[]): Promise<void> {
  const { hostname, port, username, password } = new URL(postgresUrl);
  const env = {
    ...childEnvironment(),
    SQL_PLUGIN: 'postgres12',
    SQL_HOST: hostname,
    SQL_PORT: port,
    SQL_USER: decodeURIComponent(username),
    SQL_PASSWORD: decodeURIComponent(password),
  };
  await promisify(execFile)(sqlTool, ['--database', database, ...args], { env });
}

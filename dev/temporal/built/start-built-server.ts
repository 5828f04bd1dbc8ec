import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { freePorts } from '../../free-port.ts';
import { urlOf } from '../../postgres/url-of.ts';
import { childEnvironment } from '../../process/child-environment.ts';
import { type Child, startChild } from '../../process/start-child.ts';
import { dynamicConfigFile } from '../dynamic-config.ts';
import { createSchema } from './create-schema.ts';
import type { ServerBinaries } from './server-binaries.ts';
import { DEFAULT_STORE, INNER_PORTS, serverConfig } from './server-config.ts';

export interface BuiltServerOptions {
  binaries: ServerBinaries;
  /** Where its configuration goes. */
  folder: string;
  logFolder: string;
  /** URL of the PostgreSQL server's maintenance database, as a user who may create databases. */
  postgresUrl: string;
  port: number;
  onSpawn?: (name: string, pid: number) => void;
}

/** Starts the production server on PostgreSQL; soon it answers at 127.0.0.1:port. */
export async function startBuiltServer(options: BuiltServerOptions): Promise<Child> {
  const { binaries, folder, port } = options;
  await createSchema(binaries.sqlTool, options.postgresUrl);
  await forgetMembers(options.postgresUrl);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const dynamicConfig = join(folder, 'dynamic-config.yaml');
  await writeFile(dynamicConfig, dynamicConfigFile());
  const configFile = join(folder, 'server.yaml');
  const config = serverConfig({
    postgres: new URL(options.postgresUrl),
    frontendPort: port,
    innerPorts: await freePorts(INNER_PORTS),
    dynamicConfigFile: dynamicConfig,
  });
  await writeFile(configFile, JSON.stringify(config, null, 2), { mode: 0o600 });
  const child = await startChild({
    name: 'Temporal',
    command: binaries.server,
    args: ['--config-file', configFile, '--allow-no-auth', 'start'],
    env: childEnvironment(),
    cwd: folder,
    logFile: join(options.logFolder, 'temporal.log'),
    onSpawn: options.onSpawn,
  });
  return child;
}

/** A server that was killed is still listed as a member, and the next one would spend its first seconds asking it. */
async function forgetMembers(postgresUrl: string): Promise<void> {
  const client = new pg.Client(urlOf(postgresUrl, DEFAULT_STORE));
  await client.connect();
  try {
    await client.query('DELETE FROM cluster_membership');
  } finally {
    await client.end();
  }
}

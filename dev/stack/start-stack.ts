import { join } from 'node:path';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { readConfig, readMigrationConfig } from '../../platform/config/service.ts';
import { setUpDemo } from '../demo-partner.ts';
import { rotateLog } from '../process/files.ts';
import { keepRunning } from '../process/keep-running.ts';
import { ChildRegistry, stopOrphans } from '../process/orphans.ts';
import { findTemporalSource, temporalSearch } from '../temporal/find-temporal-source.ts';
import { type RunningTemporal, startTemporal } from '../temporal/start-temporal.ts';
import { startLocalTron } from '../tron/local-tron.ts';
import { buildWorkbench } from './build-workbench.ts';
import { dataFolder, loadSecrets, takeDataFolder } from './data-folder.ts';
import { makeLogins, migrateDatabase, startDatabase } from './database.ts';
import { LOCAL_ISSUERS, type LocalIssuerName } from './local-issuers.ts';
import { choosePorts, demandFree } from './ports.ts';
import { codecEnvironment, serviceEnvironment } from './service-environment.ts';
import { startServices } from './services.ts';
import type { Settings } from './settings.ts';
import { readStackFile, type StackFile, writeStackFile } from './stack-file.ts';

interface StackOptions {
  settings: Settings;
  /** Whether it runs a fake TRON node, and with it deposits. */
  withTron?: boolean;
  /** The fake issuer that it runs, for live mode. */
  network?: LocalIssuerName | undefined;
  report: (line: string) => void;
  /**
   * Everything that is started is registered here. Disposing of it stops everything, the last started first.
   */
  disposables: AsyncDisposableStack;
}

export interface StartedStack extends StackFile {
  /** Whether the demo partner's keys have not been shown yet. */
  demoIsNew: boolean;
}

/** Starts the whole service on this machine, and returns once it answers. */
export async function startStack(options: StackOptions): Promise<StartedStack> {
  const { settings, withTron = false, network, report, disposables } = options;
  const folder = dataFolder(settings.DATA_DIR);
  const lock = takeDataFolder(folder);
  disposables.defer(() => lock.release());
  const registry = new ChildRegistry(folder.children);
  await stopOrphans(registry, report);

  const secrets = loadSecrets(folder.secrets);
  await demandFree(settings.PORT, 'PORT');
  if (settings.OPERATIONS_PORT !== undefined && settings.OPERATIONS_PORT !== settings.PORT) {
    await demandFree(settings.OPERATIONS_PORT, 'OPERATIONS_PORT');
  }
  const ports = await choosePorts(folder.ports, {
    postgres: settings.POSTGRES_PORT,
    temporal: settings.TEMPORAL_PORT,
    temporalUi: settings.TEMPORAL_UI_PORT,
    worker: settings.WORKER_PORT,
  });
  const tron = withTron ? await startLocalTron({ file: folder.tron, port: ports.tron }) : undefined;
  disposables.defer(async () => tron?.stop());
  const issuer =
    network === undefined
      ? undefined
      : await LOCAL_ISSUERS[network]({
          file: join(folder.issuers, `${network}.json`),
          port: ports.issuer,
          apiOrigin: toOrigin({ host: settings.HOST, port: settings.PORT }),
        });
  disposables.defer(async () => issuer?.stop());

  const onSpawn = (name: string, pid: number) => registry.record(name, pid);
  const shared = { folder, report, onSpawn, disposables };
  // Side by side: one waits for the network, the other for the disk.
  const [source, embeddedUrl] = await awaitAll([
    findTemporalSource(temporalSearch(settings, report)),
    settings.DATABASE_URL === undefined
      ? startDatabase({ ...shared, port: ports.postgres, password: secrets.postgresPassword })
      : undefined,
    buildWorkbench(report),
  ]);
  const ownerDatabaseUrl = settings.DATABASE_URL ?? (embeddedUrl as string);
  // The UI of a Temporal server that is not ours does not know our codec.
  const hasUi = source.kind !== 'existing';
  const codecKeys = settings.CODEC_KEYS ?? (hasUi ? secrets.codecKeys : undefined);
  const codecOrigin = `http://127.0.0.1:${ports.codec}`;
  const codecEndpoint = hasUi ? `${codecOrigin}/${secrets.codecToken}` : undefined;
  const [temporal, { databaseUrl, workerDatabaseUrl, operatorDatabaseUrl }] = await awaitAll([
    keepTemporal(
      {
        source,
        dataDir: folder.path,
        namespace: settings.TEMPORAL_NAMESPACE,
        port: ports.temporal,
        uiPort: ports.temporalUi,
        codecEndpoint,
        connection:
          source.kind === 'existing' ? temporalConnection(process.env, settings.TEMPORAL_API_KEY) : undefined,
        onSpawn,
      },
      shared,
    ),
    migrateDatabase(ownerDatabaseUrl, report).then(() =>
      makeLogins(ownerDatabaseUrl, secrets.logins, settings),
    ),
  ]);
  const env = serviceEnvironment({
    folder,
    settings,
    databaseUrl,
    encryptionKeys: settings.ENCRYPTION_KEYS ?? secrets.encryptionKeys,
    codecKeys,
    workerPort: ports.worker,
    temporalAddress: temporal.address,
    tron: tron?.environment,
    issuer: issuer?.environment,
  });
  const config = readConfig(env);
  const demo = await setUpDemo({
    config: {
      ...config,
      firstProduct: readMigrationConfig(env).firstProduct,
      databaseUrl: operatorDatabaseUrl,
    },
    file: folder.demoPartner,
  });
  await startServices({
    ...shared,
    env,
    workerEnv: { ...env, DATABASE_URL: workerDatabaseUrl },
    logs: folder.logs,
    codec:
      hasUi && codecKeys !== undefined
        ? {
            env: codecEnvironment({ settings, ports, keys: codecKeys, token: secrets.codecToken }),
            origin: codecOrigin,
          }
        : undefined,
    readinessOrigin: toOrigin(config.operations ?? config),
    temporal: {
      connection: temporalConnection(
        env,
        source.kind === 'existing' ? settings.TEMPORAL_API_KEY : env.TEMPORAL_API_KEY,
      ),
      namespace: temporal.namespace,
    },
  });
  const stack: StackFile = {
    databaseUrl,
    workerDatabaseUrl,
    ownerDatabaseUrl,
    operatorDatabaseUrl,
    temporalAddress: temporal.address,
    temporalNamespace: temporal.namespace,
    apiUrl: `${toOrigin(config)}/v1`,
    temporalUiUrl: temporal.uiUrl,
    codecEndpoint,
    workerUrl: toOrigin(config.worker),
    demo,
    tronUrl: tron?.url,
    issuerUrl: issuer?.url,
    issuerEnvironment: issuer?.environment,
  };
  const demoIsNew = readStackFile(folder.stack)?.demo.partnerId !== demo.partnerId;
  writeStackFile(folder.stack, stack);
  return { ...stack, demoIsNew };
}

/** Starts a Temporal server. One of our own is restarted whenever it ends. */
async function keepTemporal(
  options: Parameters<typeof startTemporal>[0],
  { report, disposables }: Pick<StackOptions, 'report' | 'disposables'>,
): Promise<RunningTemporal> {
  report(`starting Temporal: ${options.source.label}`);
  rotateLog(join(options.dataDir, 'logs', 'temporal.log'));
  const kept = await keepRunning({ name: 'Temporal', report, start: () => startTemporal(options) });
  disposables.defer(() => kept.stop());
  return kept.first;
}

/** The SDK reads TEMPORAL_TLS_… and the user's profile. The API key may have come from a file. */
function temporalConnection(env: NodeJS.ProcessEnv, apiKey: string | undefined) {
  const overrideEnvVars = { ...env, TEMPORAL_API_KEY: apiKey } as Record<string, string>;
  return loadClientConnectConfig({ overrideEnvVars }).connectionOptions ?? {};
}

function toOrigin({ host, port }: { host: string; port: number }): string {
  return `http://${host === '::1' ? '[::1]' : host}:${port}`;
}

/**
 * As Promise.all, but it rejects only after all have ended, so that nothing is still starting while the rest
 * is stopped.
 */
async function awaitAll<const T extends readonly unknown[]>(
  works: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  await Promise.allSettled(works);
  return Promise.all(works);
}

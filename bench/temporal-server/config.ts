import { DYNAMIC_CONFIG } from '../../dev/temporal/dynamic-config.ts';

/** Temporal's own databases. */
export const DEFAULT_STORE = 'temporal';
export const VISIBILITY_STORE = 'temporal_visibility';

interface ServerConfigOptions {
  postgres: URL;
  frontendPort: number;
  /** Seven more, through which the server's parts talk to each other. */
  innerPorts: readonly number[];
  dynamicConfigFile: string;
}

/** How many ports a server needs in addition to the frontend's. */
export const INNER_PORTS = 7;

/** The configuration of a single Temporal server that listens on loopback only. */
export function serverConfig(options: ServerConfigOptions): object {
  const [frontendMember, matching, matchingMember, history, historyMember, worker, workerMember] =
    options.innerPorts;
  const rpc = (grpcPort: number | undefined, membershipPort: number | undefined) => ({
    rpc: { grpcPort, membershipPort, bindOnLocalHost: true },
  });
  return {
    log: { stdout: true, level: 'warn' },
    persistence: {
      defaultStore: 'default',
      visibilityStore: 'visibility',
      numHistoryShards: 4,
      datastores: {
        default: { sql: sql(options.postgres, DEFAULT_STORE, 40) },
        visibility: { sql: sql(options.postgres, VISIBILITY_STORE, 10) },
      },
    },
    global: { membership: { maxJoinDuration: '30s', broadcastAddress: '127.0.0.1' } },
    services: {
      frontend: rpc(options.frontendPort, frontendMember),
      matching: rpc(matching, matchingMember),
      history: rpc(history, historyMember),
      worker: rpc(worker, workerMember),
    },
    clusterMetadata: {
      enableGlobalNamespace: false,
      failoverVersionIncrement: 10,
      masterClusterName: 'active',
      currentClusterName: 'active',
      clusterInformation: {
        active: {
          enabled: true,
          initialFailoverVersion: 1,
          rpcName: 'frontend',
          rpcAddress: `127.0.0.1:${options.frontendPort}`,
        },
      },
    },
    dcRedirectionPolicy: { policy: 'noop' },
    archival: { history: { state: 'disabled' }, visibility: { state: 'disabled' } },
    dynamicConfigClient: { filepath: options.dynamicConfigFile, pollInterval: '60s' },
  };
}

function sql(postgres: URL, databaseName: string, maxConns: number): object {
  return {
    pluginName: 'postgres12',
    databaseName,
    connectAddr: postgres.host,
    connectProtocol: 'tcp',
    user: decodeURIComponent(postgres.username),
    password: decodeURIComponent(postgres.password),
    maxConns,
    maxIdleConns: maxConns,
    maxConnLifetime: '1h',
  };
}

/** The text of a dynamic configuration file. JSON is valid YAML. */
export function dynamicConfigFile(): string {
  const entries = Object.entries(DYNAMIC_CONFIG).map(([name, value]) => [name, [{ value }]]);
  return JSON.stringify(Object.fromEntries(entries), null, 2);
}

/** The databases Temporal keeps to itself, beside the service's own. */
export const DEFAULT_STORE = 'temporal';
export const VISIBILITY_STORE = 'temporal_visibility';

interface ServerConfigOptions {
  postgres: URL;
  frontendPort: number;
  /** Seven more, for what the server's parts say to each other. */
  innerPorts: readonly number[];
  dynamicConfigFile: string;
}

/** How many ports beside the frontend's a server needs. */
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

/**
 * Settings that make one local server answer early and forget nothing it was just told. The same names serve both the
 * server's own file and `temporal server start-dev --dynamic-config-value`.
 */
export const DYNAMIC_CONFIG: Readonly<Record<string, boolean | number | string>> = {
  // Tests skip a workflow's own time on the real server.
  'frontend.WorkflowTimeSkippingEnabled': true,
  // A search attribute or a namespace can be used as soon as it has been registered.
  'system.forceSearchAttributesCacheRefreshOnRead': true,
  'system.namespaceCacheRefreshInterval': '1s',
  // One server has nobody to tell that it comes or goes.
  'system.ringpopApproximateMaxPropagationTime': '100ms',
  // One host gains nothing from several partitions, and a task may wait in one while the poller waits at another.
  'matching.numTaskqueueReadPartitions': 1,
  'matching.numTaskqueueWritePartitions': 1,
  // Partners take turns where tasks queue up: each workflow is started with its partner as fairness key.
  'matching.enableFairness': true,
  'frontend.namespaceRPS.visibility': 200,
  // It asks a server on the internet.
  'frontend.enableServerVersionCheck': false,
};

/** The shape of a dynamic configuration file. JSON is YAML too. */
export function dynamicConfigFile(): string {
  const entries = Object.entries(DYNAMIC_CONFIG).map(([name, value]) => [name, [{ value }]]);
  return JSON.stringify(Object.fromEntries(entries), null, 2);
}

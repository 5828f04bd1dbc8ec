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

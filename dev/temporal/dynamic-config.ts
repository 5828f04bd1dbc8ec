/**
 * Settings with which a single local server answers early and sees at once what was just registered. The
 * names are the same in the server's own file and in `temporal server start-dev --dynamic-config-value`.
 */
export const DYNAMIC_CONFIG: Readonly<Record<string, boolean | number | string>> = {
  // Tests skip a workflow's time on the real server.
  'frontend.WorkflowTimeSkippingEnabled': true,
  // A search attribute or a namespace can be used as soon as it has been registered.
  'system.forceSearchAttributesCacheRefreshOnRead': true,
  'system.namespaceCacheRefreshInterval': '1s',
  // A single server has no other to inform when it starts or stops.
  'system.ringpopApproximateMaxPropagationTime': '100ms',
  // One host gains nothing from several partitions: a task could wait in one while the poller waits at
  // another.
  'matching.numTaskqueueReadPartitions': 1,
  'matching.numTaskqueueWritePartitions': 1,
  // Partners take turns if tasks queue up: each workflow is started with its partner as fairness key.
  'matching.enableFairness': true,
  'frontend.namespaceRPS.visibility': 200,
  // It would call a server on the internet.
  'frontend.enableServerVersionCheck': false,
};

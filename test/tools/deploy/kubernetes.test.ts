import assert from 'node:assert/strict';
import { parse as parseYaml } from 'yaml';
import { API_PARTS } from '../../../platform/config/api-parts.ts';
import { parseDuration } from '../../../platform/config/duration.ts';
import { Environment } from '../../../platform/config/environment.ts';
import { WORKER_QUEUES } from '../../../platform/config/task-queues.ts';
import { kubernetesResources, type Resource, readDeployed } from '../../support/deployed.ts';

describe('the deployment on Kubernetes', () => {
  const resources = kubernetesResources('config', 'api', 'worker', 'codec');
  const ofKind = (kind: string) => resources.filter((resource) => resource.kind === kind);
  const deployments = ofKind('Deployment').map(({ metadata, spec }) => ({
    name: metadata.name as string,
    labels: spec.selector.matchLabels as Record<string, string>,
    template: spec.template,
    pod: spec.template.spec,
    container: spec.template.spec.containers[0],
  }));
  const [operator] = kubernetesResources('operator');
  const OPERATOR = { labels: operator.metadata.labels as Record<string, string>, pod: operator.spec };
  const apis = deployments.filter(({ labels }) => labels.app === 'card-issuing-api');

  it('keeps every kind of process there while nodes are drained or a zone is lost', () => {
    assert.deepEqual(
      deployments.map(({ name }) => name),
      ['api', 'reveal', 'network', 'worker', 'codec'],
    );
    for (const { name, labels, template, pod } of deployments) {
      const budget = ofKind('PodDisruptionBudget').find(({ metadata }) => metadata.name === name);
      assert.deepEqual(budget?.spec.selector.matchLabels, labels, name);
      assert.deepEqual(
        pod.topologySpreadConstraints.map((one: Resource) => [
          one.topologyKey,
          one.labelSelector.matchLabels,
        ]),
        [
          ['kubernetes.io/hostname', labels],
          ['topology.kubernetes.io/zone', labels],
        ],
        name,
      );
      assert.deepEqual(template.metadata.labels, labels, name);
    }
  });

  it('asks every process whether it is alive and ready, at a port that it has, and an API of PostgreSQL alone', () => {
    for (const { name, container } of deployments) {
      const ports = container.ports.map(({ name }: { name: string }) => name);
      for (const probe of [container.livenessProbe, container.readinessProbe])
        assert.ok(ports.includes(probe.httpGet.port), name);
    }
    for (const { name, container } of apis)
      assert.equal(container.readinessProbe.httpGet.path, '/servez', name);
  });

  it('lets no process write, gain rights or run as root', () => {
    const others = kubernetesResources('migrate', 'operator').map((resource) => {
      const pod = resource.kind === 'Pod' ? resource.spec : resource.spec.template.spec;
      return { name: resource.metadata.generateName, pod, container: pod.containers[0] };
    });
    for (const { name, pod, container } of [...deployments, ...others]) {
      assert.equal(pod.securityContext.runAsNonRoot, true, name);
      assert.equal(pod.automountServiceAccountToken, false, name);
      // Else the Service "codec" sets CODEC_PORT to tcp://…, and no process starts.
      assert.equal(pod.enableServiceLinks, false, name);
      const { allowPrivilegeEscalation, readOnlyRootFilesystem, capabilities } = container.securityContext;
      assert.deepEqual(
        [allowPrivilegeEscalation, readOnlyRootFilesystem, capabilities.drop],
        [false, true, ['ALL']],
      );
    }
  });

  it('limits the memory of every process, to the same as under Docker Compose', () => {
    const { services } = parseYaml(readDeployed('docker-compose.yml'), { merge: true });
    const limits = deployments.map(({ name, container: { resources } }) => [name, resources.limits.memory]);
    for (const [name, limit] of limits) {
      assert.match(limit, /^\d+[MG]i$/, name);
      // Compose has no process for each part of the API.
      if (services[name]) assert.equal(services[name].mem_limit, limit.toLowerCase().replace('i', ''), name);
    }
  });

  it('gives every process the time to stop that docs/upgrading.md promises', () => {
    const [config] = ofKind('ConfigMap');
    const drainMs = parseDuration(config.data.DRAIN_DELAY) ?? 0;
    const { WEBHOOK_TIMEOUT: webhookTimeoutMs } = Environment.pick({ WEBHOOK_TIMEOUT: true }).parse({});
    for (const { name, pod } of apis)
      assert.ok(pod.terminationGracePeriodSeconds * 1_000 >= drainMs + 25_000, name);
    const worker = deployments.find(({ name }) => name === 'worker');
    assert.ok(worker && worker.pod.terminationGracePeriodSeconds * 1_000 >= 15_000 + 2 * webhookTimeoutMs);
    assert.match(readDeployed('docs/upgrading.md'), /give an API process DRAIN_DELAY \+ 25 s/);
    assert.match(readDeployed('docs/upgrading.md'), /a worker 35 s with the default WEBHOOK_TIMEOUT/);
    const { services } = parseYaml(readDeployed('docker-compose.yml'), { merge: true });
    assert.equal(services.api.stop_grace_period, '30s');
    assert.equal(services.worker.stop_grace_period, '40s');
  });

  it("has metrics scraped under the jobs' names of the alerts, at a port that no Service leads to", () => {
    const monitor = parseYaml(readDeployed('deploy/kubernetes/pod-monitor.yaml')).spec;
    const alerts = readDeployed('deploy/observability/alerts.yaml');
    const monitored: string[] = monitor.selector.matchExpressions[0].values;
    for (const app of monitored) {
      assert.ok(alerts.includes(`job="${app}"`), app);
      const [{ port }] = monitor.podMetricsEndpoints;
      const pods = deployments.filter(({ labels }) => labels.app === app);
      assert.ok(pods.length > 0);
      for (const { template, container } of pods) {
        const scraped = container.ports.find(({ name }: { name: string }) => name === port);
        const annotated = template.metadata.annotations;
        assert.equal(annotated['prometheus.io/port'], String(scraped.containerPort));
      }
      const services = ofKind('Service').filter(({ spec }) => spec.selector.app === app);
      for (const { spec } of services) assert.notEqual(spec.ports[0].targetPort, port);
    }
  });

  it('scales workers by the backlog of every queue that they poll', () => {
    const [{ spec }] = ofKind('ScaledObject');
    assert.deepEqual(
      spec.triggers.map(({ metadata }: { metadata: { taskQueue: string } }) => metadata.taskQueue),
      WORKER_QUEUES,
    );
    assert.equal(spec.scaleTargetRef.name, 'worker');
  });

  it('sends each request over TLS to the processes that serve its part, and no other', () => {
    const ingresses = kubernetesResources('ingress');
    for (const { spec } of ingresses) assert.deepEqual(spec.tls[0].hosts, [spec.rules[0].host]);
    const [{ spec }] = ingresses;
    const paths: { path: string; pathType: string; backend: Resource }[] = spec.rules[0].http.paths;
    const partOf = (url: string) => {
      const rule = paths.find(({ path, pathType }) =>
        pathType === 'Prefix' ? url.startsWith(path) : new RegExp(`^${path}`).test(url),
      );
      const service = ofKind('Service').find(({ metadata }) => metadata.name === rule?.backend.service.name);
      return service?.spec.selector.part;
    };
    const routes: Record<string, string> = {
      '/v1/cards/card_1/secure-details': 'reveal',
      '/v1/cards/card_1/reveal-links': 'reveal',
      '/reveal/rvl_1': 'reveal',
      '/reveal/page.js': 'reveal',
      '/v1/cards/card_1': 'partner',
      '/v1/cards/card_1/topups': 'partner',
      '/v1/balance': 'partner',
      '/docs': 'partner',
      '/workbench/': 'partner',
      '/network/callbacks': 'network',
      '/network/transactions': 'network',
    };
    for (const [url, part] of Object.entries(routes)) assert.equal(partOf(url), part, url);
    const served = apis.map(({ labels, container }) => [
      labels.part,
      container.env.find(({ name }: { name: string }) => name === 'API_PARTS').value,
    ]);
    assert.deepEqual(served, [
      ['partner', 'partner,workbench'],
      ['reveal', 'reveal'],
      ['network', 'network'],
    ]);
    assert.deepEqual(served.flatMap(([, value = '']) => value.split(',')).sort(), [...API_PARTS].sort());
  });

  it('names in its policies only processes that there are, and closes everything else', () => {
    const policies = kubernetesResources('network-policy');
    const [closed] = policies;
    assert.deepEqual(closed.spec, { podSelector: {}, policyTypes: ['Ingress', 'Egress'] });
    const values = (key: string) =>
      policies
        .flatMap(({ spec }) => [
          ...(spec.podSelector.matchExpressions ?? [])
            .filter((one: Resource) => one.key === key)
            .flatMap((one: Resource) => one.values),
          spec.podSelector.matchLabels?.[key] ?? [],
        ])
        .flat();
    const known = (key: string) => deployments.map(({ labels }) => labels[key]);
    for (const app of values('app')) assert.ok([...known('app'), OPERATOR.labels.app].includes(app), app);
    for (const part of values('part')) assert.ok(known('part').includes(part), part);
    const open = (name: string) =>
      policies.find(({ metadata }) => metadata.name === name).spec.ingress[0].ports[0].port;
    for (const { container } of apis) {
      const ports = container.ports.map(({ name }: { name: string }) => name);
      assert.ok(ports.includes(open('requests')) && ports.includes(open('metrics')));
    }
  });

  const selects = ({ spec: { podSelector } }: Resource, labels: Record<string, string>) =>
    Object.entries(podSelector.matchLabels ?? {}).every(([key, value]) => labels[key] === value) &&
    (podSelector.matchExpressions ?? []).every(
      ({ key, operator, values }: Resource) => values.includes(labels[key]) === (operator === 'In'),
    );

  it('lets nobody reach the pod of an operator, which has the keys and a login', () => {
    const open = kubernetesResources('network-policy').filter(({ spec }) => spec.ingress !== undefined);
    assert.ok(open.length > 0);
    for (const policy of open) assert.ok(!selects(policy, OPERATOR.labels), policy.metadata.name);
  });

  for (const issuer of ['increase', 'lithic']) {
    it(`lets each process that has ${issuer}'s API key reach the internet`, () => {
      const policies = kubernetesResources('network-policy', `issuer-${issuer}`).filter(
        ({ kind, spec }) =>
          kind === 'NetworkPolicy' && spec.egress?.[0].to?.[0].ipBlock?.cidr === '0.0.0.0/0',
      );
      const secrets = (pod: Resource) =>
        pod.volumes.flatMap(({ secret }: Resource) => (secret?.items ?? []).map(({ key }: Resource) => key));
      const asking = [...deployments, OPERATOR].filter(({ pod }) =>
        secrets(pod).includes(`${issuer}_api_key`),
      );
      assert.ok(asking.length >= 4);
      for (const { labels } of asking)
        assert.ok(
          policies.some((policy) => selects(policy, labels)),
          JSON.stringify(labels),
        );
    });
  }

  it('has the alerts of deploy/observability as a PrometheusRule', () => {
    const indented = readDeployed('deploy/observability/alerts.yaml').replaceAll(/^(?=.)/gm, '  ');
    const rule = parseYaml(readDeployed('deploy/kubernetes/prometheus-rule.yaml') + indented);
    assert.equal(rule.kind, 'PrometheusRule');
    assert.deepEqual(rule.spec, parseYaml(readDeployed('deploy/observability/alerts.yaml')));
    const { route, receivers } = parseYaml(readDeployed('deploy/observability/alertmanager.yml'));
    const names = receivers.map(({ name }: { name: string }) => name);
    for (const { receiver } of [route, ...route.routes]) assert.ok(names.includes(receiver), receiver);
  });
});

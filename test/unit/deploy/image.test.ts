import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path/posix';
import { parseAllDocuments, parse as parseYaml } from 'yaml';
import { IN_FILES } from '../../../config/environment.ts';
import { WORKER_QUEUES } from '../../../config/task-queues.ts';
import { runtimeImports } from '../../../dev/imports/find-violations.ts';

const read = (file: string) => readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8');
const matches = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, found = '']) => found);

const ENTRIES = [
  'api/main.ts',
  'worker/main.ts',
  'codec/main.ts',
  'operator/main.ts',
  'operator/migrate.ts',
  'temporal/bundle-workflows.ts',
  'workflows/index.ts',
];
const DEPLOYED = [
  'docker-compose.yml',
  'deploy/kubernetes/card-issuing.yaml',
  'deploy/kubernetes/migrate.yaml',
];

describe('the image', () => {
  const dockerfile = read('Dockerfile');
  const copied = matches(dockerfile, /^COPY ([a-z]+) \1$/gm);

  it('has every folder that its processes import, and no other', () => {
    const rooms = new Set<string>();
    const seen = new Set<string>();
    const visit = (file: string): void => {
      if (seen.has(file)) return;
      seen.add(file);
      rooms.add(file.split('/')[0] ?? '');
      for (const specifier of runtimeImports(read(file))) {
        if (specifier.startsWith('.')) visit(join(dirname(file), specifier));
      }
    };
    for (const entry of ENTRIES) visit(entry);
    assert.deepEqual(copied.toSorted(), [...rooms].toSorted());
  });

  it('copies only files that .dockerignore lets through', () => {
    const sent = matches(read('.dockerignore'), /^!(\S+)$/gm);
    const wanted = matches(dockerfile, /^COPY (?!--from)(.+) \S+$/gm).flatMap((files) => files.split(' '));
    assert.deepEqual(sent.toSorted(), [...new Set(wanted)].toSorted());
  });
});

describe('a deployment', () => {
  for (const file of DEPLOYED) {
    it(`starts and mounts files that exist in ${file}`, () => {
      const started = matches(read(file), /\.\/process\/check-node\.mjs, (\S+\.ts)\]/g);
      assert.ok(started.length > 0);
      for (const entry of started) assert.ok(existsSync(entry), entry);
      const mounted = matches(read(file), /'?(\.\/deploy\/[^:']+):/g);
      for (const path of mounted) assert.ok(existsSync(path), path);
    });

    it(`passes only secrets that the configuration knows in ${file}`, () => {
      const ours = matches(read(file), /^[^#\n]*?\b([A-Z_]+)_FILE\b/gm).filter(
        (name) => name !== 'POSTGRES_PASSWORD',
      );
      assert.ok(ours.length > 0);
      for (const name of ours) assert.ok(IN_FILES.includes(name), name);
    });
  }

  it('gives its migration the address of Temporal', () => {
    for (const file of ['docker-compose.yml', 'deploy/kubernetes/migrate.yaml']) {
      const [, migration = ''] = read(file).split('operator/migrate.ts');
      assert.match(migration.split(/^ {2}\w+:$/m)[0] ?? '', /TEMPORAL_ADDRESS/, file);
    }
  });
});

describe('the deployment on Kubernetes', () => {
  // biome-ignore lint/suspicious/noExplicitAny: resources of several kinds.
  const resources: any[] = parseAllDocuments(read('deploy/kubernetes/card-issuing.yaml')).map((document) =>
    document.toJS(),
  );
  const ofKind = (kind: string) => resources.filter((resource) => resource.kind === kind);
  const deployments = ofKind('Deployment').map(({ metadata, spec }) => ({
    name: metadata.name as string,
    labels: spec.selector.matchLabels,
    template: spec.template,
    pod: spec.template.spec,
    container: spec.template.spec.containers[0],
  }));

  it('keeps every kind of process there while nodes are drained', () => {
    assert.deepEqual(
      deployments.map(({ name }) => name),
      ['api', 'worker', 'codec'],
    );
    for (const { name, labels, template, pod } of deployments) {
      const budget = ofKind('PodDisruptionBudget').find(({ metadata }) => metadata.name === name);
      assert.deepEqual(budget?.spec.selector.matchLabels, labels, name);
      assert.deepEqual(pod.topologySpreadConstraints[0].labelSelector.matchLabels, labels, name);
      assert.deepEqual(template.metadata.labels, labels, name);
    }
  });

  it('asks every process whether it is alive and ready, at a port that it has', () => {
    for (const { name, container } of deployments) {
      const ports = container.ports.map(({ name }: { name: string }) => name);
      for (const probe of [container.livenessProbe, container.readinessProbe])
        assert.ok(ports.includes(probe.httpGet.port), name);
    }
  });

  it('lets no process write, gain rights or run as root', () => {
    for (const { name, pod, container } of deployments) {
      assert.equal(pod.securityContext.runAsNonRoot, true, name);
      assert.equal(pod.automountServiceAccountToken, false, name);
      const { allowPrivilegeEscalation, readOnlyRootFilesystem, capabilities } = container.securityContext;
      assert.deepEqual(
        [allowPrivilegeEscalation, readOnlyRootFilesystem, capabilities.drop],
        [false, true, ['ALL']],
      );
    }
  });

  it("has metrics scraped under the jobs' names of the alerts, at a port that no Service leads to", () => {
    const monitor = parseYaml(read('deploy/kubernetes/pod-monitor.yaml')).spec;
    const alerts = read('deploy/observability/alerts.yaml');
    const monitored: string[] = monitor.selector.matchExpressions[0].values;
    for (const app of monitored) {
      const { template, container } =
        deployments.find(({ labels }) => labels.app === app) ?? assert.fail(app);
      assert.ok(alerts.includes(`job="${app}"`), app);
      const [{ port }] = monitor.podMetricsEndpoints;
      const scraped = container.ports.find(({ name }: { name: string }) => name === port);
      const annotated = template.metadata.annotations;
      assert.equal(annotated['prometheus.io/port'], String(scraped.containerPort));
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
});

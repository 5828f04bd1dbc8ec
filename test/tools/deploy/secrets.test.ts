import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { parse as parseYaml } from 'yaml';
import { IN_FILES } from '../../../platform/config/environment.ts';
import {
  kubernetesResources,
  type Resource,
  readDeployed,
  secretFiles,
  variablesRead,
} from '../../support/deployed.ts';

/** Fails on a secret that the process would not read, and on one that is not in a file. */
function assertReads(name: string, entry: string, env: Record<string, string>): void {
  const read = variablesRead(entry, env);
  for (const variable of secretFiles(env).keys()) {
    assert.ok(IN_FILES.includes(variable), `${name}: ${variable} is no secret of ours`);
    assert.ok(read.includes(variable), `${name} does not read ${variable}`);
  }
  for (const variable of Object.keys(env)) assert.ok(!IN_FILES.includes(variable), `${name}: ${variable}`);
}

describe('the secrets of the deployment on Kubernetes', () => {
  const resources = kubernetesResources('config', 'api', 'worker', 'codec', 'migrate', 'operator');
  const configs = new Map<string, Record<string, string>>(
    resources.filter(({ kind }) => kind === 'ConfigMap').map(({ metadata, data }) => [metadata.name, data]),
  );
  const workloads = resources
    .filter(({ kind }) => ['Deployment', 'Job', 'Pod'].includes(kind))
    .map(({ kind, metadata, spec }) => {
      const pod: Resource = kind === 'Pod' ? spec : spec.template.spec;
      const [container] = pod.containers;
      const name: string = metadata.name ?? metadata.generateName;
      // operator.sh runs the command line in the operator's pod, and the API is what the image runs by default.
      const command = container.command?.at(-1) ?? 'api/main.ts';
      const env = Object.assign(
        {},
        ...(container.envFrom ?? []).map(({ configMapRef }: Resource) => configs.get(configMapRef.name)),
        ...container.env.map(({ name, value }: Resource) => ({ [name]: value })),
      );
      return { name, pod, container, entry: name === 'operator-' ? 'operator/main.ts' : command, env };
    });

  it('are those that each process reads, and no others', () => {
    assert.equal(workloads.length, 7);
    for (const { name, entry, env } of workloads) assertReads(name, entry, env);
  });

  it('are mounted one by one, for nobody else to read', () => {
    const names = new Set<string>();
    for (const { name, pod, container, env } of workloads) {
      const { secret } = pod.volumes.find((volume: Resource) => volume.name === 'secrets');
      const { mountPath } = container.volumeMounts.find((mount: Resource) => mount.name === 'secrets');
      const mounted = secret.items.map(({ path }: { path: string }) => join(mountPath, path));
      assert.deepEqual(mounted.toSorted(), [...secretFiles(env).values()].toSorted(), name);
      assert.equal(secret.defaultMode, 0o400, name);
      names.add(secret.secretName);
      const others = pod.volumes.filter((volume: Resource) => !['secrets', 'issuer'].includes(volume.name));
      for (const volume of others) assert.equal(volume.secret, undefined, name);
      for (const { secretRef } of container.envFrom ?? []) assert.equal(secretRef, undefined, name);
    }
    assert.equal(names.size, workloads.length, 'every process has a Secret of its own');
  });

  it('are made with the commands of docs/deploying.md', () => {
    const documented = readDeployed('docs/deploying.md').replaceAll('\\\n', ' ');
    for (const { name, pod } of workloads) {
      const { secret } = pod.volumes.find((volume: Resource) => volume.name === 'secrets');
      const pattern = new RegExp(`create secret generic ${secret.secretName} ([^\\n]*)`);
      const [, files = ''] = pattern.exec(documented) ?? [];
      const keys = [...files.matchAll(/--from-file=(\w+)/g)].map(([, key]) => key);
      const wanted = secret.items.map(({ key }: { key: string }) => key);
      assert.deepEqual(keys.toSorted(), wanted.toSorted(), name);
    }
  });

  it('leave a process that reveals cards without any of Temporal', () => {
    const reveal = workloads.find(({ name }) => name === 'reveal');
    assert.deepEqual([...secretFiles(reveal?.env).keys()], ['DATABASE_URL', 'ENCRYPTION_KEYS']);
    assert.equal(reveal?.env.TEMPORAL_ADDRESS, undefined);
  });
});

describe('the secrets of Docker Compose', () => {
  const folder = mkdtempSync(join(tmpdir(), 'secrets-'));
  const handedOut = join(folder, 'handed-out');
  const makeArgs = ['deploy/compose/make-secrets.mjs', folder, handedOut];
  const makeSecrets = () => execFileSync(process.execPath, makeArgs, { encoding: 'utf8' });
  const composed = parseYaml(readDeployed('docker-compose.yml'), { merge: true });
  const services: Record<string, Resource> = composed.services;
  const sourcesOf = (service: Resource): string[] =>
    (service.volumes ?? []).map((v: string) => v.split(':')[0]);
  const containerOf = (name: string) =>
    sourcesOf(services[name])
      .find((source) => source.startsWith('secrets-of-'))
      ?.slice('secrets-of-'.length);
  const given = (name: string): string[] => {
    const container = containerOf(name);
    return container === undefined ? [] : readdirSync(join(handedOut, container)).toSorted();
  };
  const processes = Object.entries(services).flatMap(
    ([name, { image, command, entrypoint, environment }]) => {
      const started = [...(entrypoint ?? []), ...(command ?? [])].find((word) =>
        /\/(main|migrate)\.ts$/.test(word),
      );
      const isOurs = image === 'card-issuing' && name !== 'secrets' && name !== 'logins';
      return isOurs ? [{ name, entry: started ?? 'api/main.ts', env: environment }] : [];
    },
  );

  before(() => void makeSecrets());

  it('are those that each process reads, and no others', () => {
    assert.deepEqual(
      processes.map(({ name }) => name),
      ['migrate', 'api', 'worker', 'codec', 'operator'],
    );
    for (const { name, entry, env } of processes) {
      assertReads(name, entry, env);
      const files = [...secretFiles(env).values()];
      for (const file of files) assert.equal(dirname(file), '/run/secrets');
      assert.deepEqual(given(name), files.map((file) => basename(file)).toSorted(), name);
    }
  });

  it('are those that a script or an image of others reads, and none of the service', () => {
    const ours = new Set(processes.flatMap(({ name }) => given(name)));
    const others = Object.keys(services).filter(
      (name) => name !== 'secrets' && !processes.some((process) => process.name === name),
    );
    for (const name of others) {
      const scripts = sourcesOf(services[name]).filter((source) => /\.(sh|mjs)$/.test(source));
      const texts = [JSON.stringify(services[name].environment ?? {}), ...scripts.map(readDeployed)].join(
        '\n',
      );
      const read = [...texts.matchAll(/\/run\/secrets\/(\w+)|read\('(\w+)'\)/g)].map(([, a, b]) => a ?? b);
      assert.deepEqual(given(name), [...new Set(read)].toSorted(), name);
      if (services[name].image === 'card-issuing') continue;
      // The UI's page sends the codec endpoint its token.
      const foreign = given(name).filter((file) => ours.has(file) && file !== 'codec_tokens');
      assert.deepEqual(foreign, [], name);
    }
  });

  it('are in a volume of its own for each container, and only the one that makes them has all', () => {
    for (const [name, service] of Object.entries(services)) {
      assert.equal(sourcesOf(service).includes('secrets'), name === 'secrets', name);
      const volumes = sourcesOf(service).filter((source) => source.startsWith('secrets-of-'));
      assert.ok(name === 'secrets' || volumes.length <= 1, name);
    }
    assert.deepEqual(
      sourcesOf(services.secrets).filter((source) => source.startsWith('secrets-of-')).length,
      readdirSync(handedOut).length,
    );
    assert.equal(containerOf('temporal'), containerOf('temporal-schema'));
  });

  it('can be read only by their user, stay the same at the next start, and go when nobody needs them', () => {
    const files = () =>
      readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
        statSync(join(folder, file)).isFile(),
      );
    const before = files();
    assert.ok(before.length > 20);
    for (const file of before) assert.equal(statSync(join(folder, file)).mode & 0o777, 0o400, file);
    const contents = () => files().map((file) => [file, readFileSync(join(folder, file), 'utf8')]);
    const first = contents();
    execFileSync('cp', [join(folder, 'owner_database_url'), join(handedOut, 'api', 'owner_database_url')]);
    assert.equal(makeSecrets(), '');
    assert.deepEqual(contents(), first);
  });
});

describe("an issuer's secrets", () => {
  const VARIABLES = {
    increase: ['INCREASE_API_KEY', 'INCREASE_WEBHOOK_SECRET'],
    lithic: ['LITHIC_API_KEY', 'LITHIC_WEBHOOK_SECRET', 'LITHIC_ASA_SECRET'],
  };
  const ENTRIES: Record<string, string> = {
    worker: 'worker/main.ts',
    'operator-': 'operator/main.ts',
    operator: 'operator/main.ts',
  };
  /** The files of an issuer's secrets that a process opens. */
  const filesOpened = (workload: string, env: Record<string, string>): string[] => {
    const read = variablesRead(ENTRIES[workload] ?? 'api/main.ts', env);
    return [...secretFiles(env)].filter(([name]) => read.includes(name)).map(([, file]) => file);
  };

  for (const [issuer, variables] of Object.entries(VARIABLES)) {
    it(`are files of one Secret on Kubernetes, which docs/deploying.md makes: ${issuer}`, () => {
      const [{ data }] = kubernetesResources(`issuer-${issuer}`);
      assert.equal(data.CARD_NETWORK, issuer);
      const files = secretFiles(data);
      assert.deepEqual([...files.keys()], variables);
      const documented = readDeployed('docs/deploying.md').replaceAll('\\\n', ' ');
      for (const file of files.values())
        assert.match(documented, new RegExp(`--from-file=${basename(file)}\\b`));
    });

    it(`are files of a folder with Docker Compose, of which each container has only its own: ${issuer}`, () => {
      const { services } = parseYaml(readDeployed(`deploy/compose/issuer-${issuer}.yml`));
      assert.deepEqual(Object.keys(services), ['api', 'worker', 'operator']);
      for (const [name, { environment, volumes }] of Object.entries<Resource>(services)) {
        assert.equal(environment.CARD_NETWORK, issuer);
        assert.deepEqual([...secretFiles(environment).keys()], variables);
        const opened = filesOpened(name, environment);
        const mounted = opened.map((file) => `./issuer/${basename(file)}:${file}:ro`);
        assert.deepEqual(volumes, name === 'api' ? ['./issuer:/run/issuer:ro'] : mounted);
        if (name === 'api') assert.deepEqual(opened, [...secretFiles(environment).values()]);
      }
    });
  }

  it('are mounted one by one on Kubernetes, those that each process opens and no others', () => {
    const issuers = Object.keys(VARIABLES).map((issuer) => kubernetesResources(`issuer-${issuer}`)[0]);
    const pods = kubernetesResources('api', 'worker', 'operator').filter(({ kind }) =>
      ['Deployment', 'Pod'].includes(kind),
    );
    assert.equal(pods.length, 5);
    for (const { kind, metadata, spec } of pods) {
      const pod: Resource = kind === 'Pod' ? spec : spec.template.spec;
      const [container] = pod.containers;
      const name: string = metadata.name ?? metadata.generateName;
      const { API_PARTS } = Object.fromEntries(container.env.map((one: Resource) => [one.name, one.value]));
      const opened = issuers.flatMap(({ data }) =>
        filesOpened(name, { ...data, ...(API_PARTS && { API_PARTS }) }),
      );
      const { secret } = pod.volumes.find((volume: Resource) => volume.name === 'issuer');
      const { items, ...rest } = secret;
      assert.deepEqual(rest, { secretName: 'card-issuing-issuer', optional: true, defaultMode: 0o400 });
      const mounted = items.map(({ path }: Resource) => `/run/secrets/issuer/${path}`);
      assert.deepEqual(mounted.toSorted(), opened.toSorted(), name);
      for (const { key, path } of items) assert.equal(key, path);
      assert.deepEqual(container.envFrom.at(-1), {
        configMapRef: { name: issuers[0].metadata.name, optional: true },
      });
      const mount = container.volumeMounts.find((one: Resource) => one.name === 'issuer');
      assert.deepEqual(mount, { name: 'issuer', mountPath: '/run/secrets/issuer', readOnly: true });
    }
  });
});

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path/posix';
import { DIRECTIONS } from '../../../dev/imports/directions.ts';
import { runtimeImports } from '../../../dev/imports/find-violations.ts';

const read = (file: string) => readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8');
const matches = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, found = '']) => found);

const ENTRIES = [
  'api/main.ts',
  'worker/main.ts',
  'operator/codec/main.ts',
  'operator/main.ts',
  'operator/migrate.ts',
  'platform/temporal/bundle-workflows.ts',
  'workflows/index.ts',
];
const DEPLOYED = ['docker-compose.yml', 'api', 'worker', 'codec', 'migrate'].map((name) =>
  name.includes('.') ? name : `deploy/kubernetes/${name}.yaml`,
);

describe('the image', () => {
  const dockerfile = read('Dockerfile');
  // The last stage is the image, the others are what it is made with.
  const image = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '));
  const copied = matches(image, /^COPY ([a-z]+) \1$/gm);

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

  it("has the workbench's pages, and makes them of all that they import", () => {
    assert.match(image, /^COPY --from=workbench \/app\/workbench\/dist workbench\/dist$/m);
    assert.match(read('api/workbench-files.ts'), /new URL\('\.\.\/workbench\/dist\/'/);
    const stage = dockerfile.slice(dockerfile.indexOf('AS workbench'), dockerfile.lastIndexOf('\nFROM '));
    const { workbench } = DIRECTIONS;
    const rooms = (workbench?.rooms ?? []).map((place) => String(place).split('/')[0]);
    for (const room of [...new Set(rooms), 'workbench'])
      assert.match(stage, new RegExp(`^COPY ${room} ${room}$`, 'm'));
  });

  it('has the pages that GET /guide shows', () => {
    const [, folder = ''] = /new URL\('\.\.\/\.\.\/([\w/]+)\/'/.exec(read('api/guide/guide.ts')) ?? [];
    assert.match(dockerfile, new RegExp(`^COPY ${folder} ${folder}$`, 'm'));
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
      const started = matches(read(file), /\.\/platform\/process\/check-node\.mjs, (\S+\.ts)\]/g);
      // The API's is the image's own.
      if (!file.endsWith('/api.yaml')) assert.ok(started.length > 0);
      for (const entry of started) assert.ok(existsSync(entry), entry);
      const mounted = matches(read(file), /'?(\.\/deploy\/[^:']+):/g);
      for (const path of mounted) assert.ok(existsSync(path), path);
    });
  }

  it('gives its migration the address of Temporal', () => {
    for (const file of ['docker-compose.yml', 'deploy/kubernetes/migrate.yaml']) {
      const [, migration = ''] = read(file).split('operator/migrate.ts');
      assert.match(migration.split(/^ {2}\w+:$/m)[0] ?? '', /TEMPORAL_ADDRESS|card-issuing-temporal/, file);
    }
  });
});

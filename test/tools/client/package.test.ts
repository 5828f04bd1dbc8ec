import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');
/** The last version that has `moduleResolution: node`. */
const TSC_6 = join(ROOT, 'node_modules/@typescript/typescript6/bin/tsc6');

const CODE = `
import { CardIssuing, type Card, webhooks } from 'virtual-card-issuing-client';
const client = new CardIssuing({ apiKey: 'sk_test_x', baseUrl: 'https://api.example.com/v1' });
export const ids = async (): Promise<string[]> => {
  const found: string[] = [];
  for await (const card of client.cards.list({ status: 'active' })) found.push(card.id);
  return found;
};
export async function merchant(rawBody: Uint8Array, headers: Headers): Promise<string | null | undefined> {
  const event = webhooks.verify(rawBody, headers, 'whsec_x');
  return event.type === 'card.transaction.created' ? event.data.transaction.merchant?.name : undefined;
}
export const card = (): Promise<Card> => client.cards.create({ amount: 1, external_ref: 'x' });
export const settled = (): Promise<Card> => client.cards.waitUntilSettled('card_1', { deadlineMs: 1 });
// @ts-expect-error amounts are numbers
export const wrong = () => client.cards.create({ amount: '1', external_ref: 'x' });
// @ts-expect-error there is no such status
export const none = () => client.cards.list({ status: 'open' });
console.log(client.mode, Object.keys(client).join(' '));
`;

/** What a partner's project may have: TypeScript's version, the kind of module that it writes, and how it finds packages. */
const CONSUMERS: [name: string, compiler: string, flags: string, type: 'module' | 'commonjs'][] = [
  ['moduleResolution nodenext', TSC, '--module nodenext', 'module'],
  ['moduleResolution nodenext in CommonJS', TSC, '--module nodenext', 'commonjs'],
  ['moduleResolution bundler', TSC, '--module esnext --moduleResolution bundler', 'module'],
  [
    'moduleResolution node',
    TSC_6,
    '--module esnext --moduleResolution node --ignoreDeprecations 6.0',
    'module',
  ],
  [
    'moduleResolution node in CommonJS',
    TSC_6,
    '--module commonjs --moduleResolution node --ignoreDeprecations 6.0 --esModuleInterop',
    'commonjs',
  ],
];

describe("the client's package", () => {
  let folder: string;
  /** The package as `npm pack` makes it, unpacked. */
  let unpacked: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'card-issuing-package-'));
    await cp(join(ROOT, 'client'), join(folder, 'source/client'), {
      recursive: true,
      filter: (path) => basename(path) !== 'dist',
    });
    await cp(join(ROOT, 'tsconfig.json'), join(folder, 'source/tsconfig.json'));
    await symlink(join(ROOT, 'node_modules'), join(folder, 'source/node_modules'));
    const { stdout } = await run('npm', ['pack', '--silent'], {
      cwd: join(folder, 'source/client'),
    });
    const file = stdout.trim().split('\n').at(-1) ?? '';
    await run('tar', ['-xzf', join(folder, 'source/client', file), '-C', folder]);
    unpacked = join(folder, 'package');
  });
  after(() => rm(folder, { recursive: true }));

  it('has a command that runs', async () => {
    const { bin } = JSON.parse(await readFile(join(unpacked, 'package.json'), 'utf8'));
    const { stdout } = await run('node', [join(unpacked, bin['virtual-card-issuing-client']), '--help']);
    assert.match(stdout, /^Usage: virtual-card-issuing-client listen/);
  });

  it('has the built client, its types, its README and its license, and nothing else', async () => {
    const files = (await readdir(unpacked, { recursive: true })).filter(
      (path) => !['dist', 'dist/generated'].includes(path),
    );
    const others = files.filter(
      (path) => !/^dist\/([\w-]+|generated\/(models|types|resources)\.gen)\.(js|d\.ts)$/.test(path),
    );
    assert.deepEqual(others.sort(), ['LICENSE', 'README.md', 'package.json']);
    assert.ok(files.includes('dist/index.js') && files.includes('dist/index.d.ts'), files.join());
  });

  it('has no link that leads out of it, except to the web', async () => {
    const text = await readFile(join(unpacked, 'README.md'), 'utf8');
    const links = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, target = '']) => target);
    assert.ok(links.length > 0);
    for (const link of links) assert.match(link, /^(https:\/\/|#)/);
    for (const path of await readdir(unpacked, { recursive: true })) {
      if (!/\.(js|ts|json)$/.test(path)) continue;
      assert.doesNotMatch(
        await readFile(join(unpacked, path), 'utf8'),
        /\.\.\/\.\.|sourceMappingURL|docs\//,
        path,
      );
    }
  });

  it('exports each type that a method takes or returns', async () => {
    const source = await readFile(join(ROOT, 'client/generated/resources.gen.ts'), 'utf8');
    const used = [...source.matchAll(/\bapi\.(\w+)/g)].map(([, name = '']) => name);
    const models = await readFile(join(ROOT, 'client/generated/models.gen.ts'), 'utf8');
    const exported = new Set(models.match(/\w+/g));
    assert.ok(used.length > 50);
    assert.deepEqual(
      used.filter((name) => !exported.has(name)),
      [],
    );
  });

  for (const [name, compiler, flags, type] of CONSUMERS) {
    it(`compiles with its types, and runs, in a project with ${name}`, async () => {
      const home = await mkdtemp(join(folder, 'consumer-'));
      await mkdir(join(home, 'node_modules'));
      await cp(unpacked, join(home, 'node_modules/virtual-card-issuing-client'), { recursive: true });
      await writeFile(join(home, 'package.json'), JSON.stringify({ type }));
      await writeFile(join(home, 'use.ts'), CODE);
      const common = '--strict --target es2022 --lib es2022 --types node --outDir out --rootDir .';
      const types = ['--typeRoots', join(ROOT, 'node_modules/@types')];
      await run(process.execPath, [compiler, ...`${common} ${flags}`.split(' '), ...types, 'use.ts'], {
        cwd: home,
      }).catch(({ stdout }) => assert.fail(stdout));
      const { stdout } = await run(process.execPath, [join(home, 'out/use.js')], { cwd: home });
      assert.match(stdout, /^test .*\bcards\b.*\bwebhooks\b/);
    });
  }
});

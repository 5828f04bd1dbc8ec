import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');

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
// @ts-expect-error amounts are numbers
export const wrong = () => client.cards.create({ amount: '1', external_ref: 'x' });
// @ts-expect-error there is no such status
export const none = () => client.cards.list({ status: 'open' });
console.log(client.mode, Object.keys(client).join(' '));
`;

describe("the client's package", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'card-issuing-package-'));
  });
  after(() => rm(folder, { recursive: true }));

  it('is built by tsc, and can be imported by its name with its types', async function () {
    this.timeout(300_000);
    const home = join(folder, 'node_modules/virtual-card-issuing-client');
    await mkdir(home, { recursive: true });
    await run(process.execPath, [TSC, '-p', join(ROOT, 'client'), '--outDir', join(home, 'dist')], {
      cwd: ROOT,
    });
    await cp(join(ROOT, 'client/package.json'), join(home, 'package.json'));
    const built = await readdir(join(home, 'dist'));
    assert.ok(built.includes('index.js') && built.includes('index.d.ts'), built.join());
    await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
    await writeFile(join(folder, 'use.ts'), CODE);
    const flags = '--noEmit --strict --module nodenext --target es2022 --lib es2022 --types node'.split(' ');
    const types = join(ROOT, 'node_modules/@types');
    await run(process.execPath, [TSC, ...flags, '--typeRoots', types, join(folder, 'use.ts')], {
      cwd: folder,
    }).catch(({ stdout }) => assert.fail(stdout));
    const { stdout } = await run(process.execPath, [join(folder, 'use.ts')], { cwd: folder });
    assert.match(stdout, /^test .*\bcards\b.*\bwebhooks\b/);
  });
});

import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { registerHooks } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Document, querySchemas, writeResources } from './client-resources.ts';

/**
 * `npm run client` writes client/generated from docs/openapi.json; `--check` compares them. The types'
 * generator calls TypeScript's own API, which version 7 does not have, so it gets version 6's.
 */
registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier === 'typescript' ? '@typescript/typescript6' : specifier, context),
});
const { createClient } = await import('@hey-api/openapi-ts');

const DOCUMENT = new URL('../docs/openapi.json', import.meta.url);
const FOLDER = new URL('../client/generated/', import.meta.url);

const document: Document = JSON.parse(await readFile(DOCUMENT, 'utf8'));
const schemas = { ...document.components.schemas, ...querySchemas(document) };
const files = {
  'models.gen.ts': writeModels(Object.keys(schemas)),
  'resources.gen.ts': writeResources(document),
  'types.gen.ts': await writeTypes(),
};
for (const [name, text] of Object.entries(files)) {
  if (!process.argv.includes('--check')) {
    await writeFile(new URL(name, FOLDER), text);
  } else if ((await readFile(new URL(name, FOLDER), 'utf8')) !== text) {
    console.error('client/generated does not match docs/openapi.json: run "npm run client" and commit it.');
    process.exitCode = 1;
  }
}

/** What the package exports of the types: all that a method takes or returns. */
function writeModels(schemas: readonly string[]): string {
  const names = schemas
    .filter((name) => !['Csv', 'Error', 'NoFields'].includes(name))
    .toSorted()
    .map((name) => `  ${name},\n`);
  return `// Made from the API's OpenAPI document by "npm run client". Don't edit it.\nexport type {\n${names.join('')}} from './types.gen.ts';\n`;
}

/** The schemas alone: the methods say the rest of an operation. */
async function writeTypes(): Promise<string> {
  const input = {
    openapi: '3.1.0',
    info: { title: 'API', version: '1' },
    paths: {},
    components: { schemas },
  };
  const folder = await mkdtemp(join(tmpdir(), 'card-issuing-client-'));
  try {
    await createClient({
      input,
      output: { path: folder, entryFile: false, module: { extension: '.ts' }, postProcess: [] },
      plugins: ['@hey-api/typescript'],
      logs: { level: 'silent' },
    });
    const [file = '', ...others] = await readdir(folder);
    if (others.length > 0) throw new Error(`the generator wrote more than one file: ${[file, ...others]}`);
    return await readFile(join(folder, file), 'utf8');
  } finally {
    await rm(folder, { recursive: true });
  }
}

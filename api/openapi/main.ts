import { readFile, writeFile } from 'node:fs/promises';
import { DECLARATIONS } from '../routes.ts';
import { openApiDocument } from './document.ts';

const FILE = new URL('../../docs/openapi.json', import.meta.url);

/** Writes docs/openapi.json, or with `--check` compares it with the routes. */
const text = `${JSON.stringify(openApiDocument(DECLARATIONS), null, 2)}\n`;
if (!process.argv.includes('--check')) {
  await writeFile(FILE, text);
} else if ((await readFile(FILE, 'utf8')) !== text) {
  console.error('docs/openapi.json is out of date: run "npm run openapi" and commit it.');
  process.exitCode = 1;
}

import { readFile, writeFile } from 'node:fs/promises';
import { EVENT_DATA, EVENT_TYPES } from '../../webhooks/event-types-resource.ts';
import { DECLARATIONS } from '../routes.ts';
import { openApiDocument } from './document.ts';

const DOCUMENT = new URL('../../docs/openapi.json', import.meta.url);
const GUIDE = new URL('../../docs/partners/webhooks.md', import.meta.url);

/**
 * Writes docs/openapi.json, and the list of event types in docs/partners/webhooks.md. With `--check`, it
 * compares them with the declarations instead.
 */
const guide = await readFile(GUIDE, 'utf8');
const files: [URL, string][] = [
  [DOCUMENT, `${JSON.stringify(openApiDocument(DECLARATIONS), null, 2)}\n`],
  [GUIDE, guide.replace(/(?<=\n\| event \| when \| [^\n]*\n\|---\|---\|---\|\n)(\|[^\n]*\n)*/, eventTypes)],
];
for (const [file, text] of files) {
  if (!process.argv.includes('--check')) {
    await writeFile(file, text);
  } else if ((await readFile(file, 'utf8')) !== text) {
    const [path] = /docs\/.*/.exec(file.pathname) ?? [];
    console.error(`${path} is out of date: run "npm run openapi" and commit it.`);
    process.exitCode = 1;
  }
}

/** The rows of the table of events. */
function eventTypes(): string {
  return Object.entries(EVENT_TYPES)
    .map(([type, { data, when }]) => {
      const fields = Object.keys(EVENT_DATA[data]).map((field) => `\`${field}\``);
      return `| \`${type}\` | ${when} | ${fields.join(', ')} |\n`;
    })
    .join('');
}

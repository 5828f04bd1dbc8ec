import { resolve } from 'node:path';
import type { StartedStack } from './start-stack.ts';

/**
 * What `npm start` prints when everything is up: where things are, and what to do next. The first line begins
 * with `ready`.
 */
export function readyBlock({
  stack,
  links,
  dataDir,
}: {
  stack: StartedStack;
  /** Opens the workbench, one a mode; null if the demo partner's keys make none. */
  links: { test: string; live: string } | null;
  dataDir: string;
}): string {
  const origin = stack.apiUrl.replace(/\/v1$/, '');
  const { partnerId, testKey, liveKey } = stack.demo;
  const places: [what: string, value: string | null | undefined][] = [
    ['test workbench', links?.test],
    ['live workbench', links?.live],
    ['API', stack.apiUrl],
    ['reference', `${origin}/docs`],
    ['Temporal UI', stack.temporalUiUrl],
    ['worker', stack.workerUrl],
    ['TRON node', stack.tronUrl],
    ['issuer', stack.issuerUrl],
  ];
  if (stack.demoIsNew) places.push(['demo partner', partnerId], ['test key', testKey], ['live key', liveKey]);
  const commands = [
    ...(dataDir === '.data' ? [] : [`export DATA_DIR=${quoted(resolve(dataDir))}`]),
    'eval "$(npm run -s env)"   # sets API, KEY (the test key), LIVE (the live key) and PARTNER',
    'curl -s $API/ping -H "Authorization: Bearer $KEY"',
  ];
  return [
    ...places.flatMap(([what, value]) => (value == null ? [] : [`${what.padEnd(16)}${value}`])),
    'Next, in another terminal, in this folder:',
    ...commands.map((command) => `  ${command}`),
  ]
    .map((line, index) => (index === 0 ? 'ready  ' : '       ') + line)
    .join('\n');
}

/** As one word of a shell's command. */
function quoted(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

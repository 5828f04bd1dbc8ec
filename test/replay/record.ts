import { mkdir, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { pino } from 'pino';
import { installRuntime } from '../../platform/temporal/install-runtime.ts';
import { inParallel } from '../support/in-parallel.ts';
import { startTestStack } from '../support/stack.ts';
import { startServers } from '../support/start-servers.ts';
import { historyFile, RECORDINGS } from './histories.ts';

/**
 * Runs workflows to each of their outcomes on a real server and saves their histories, which `test/replay/replay.test.ts`
 * replays with the present workflow code.
 *
 *     npx node test/replay/record.ts                             all of them
 *     npx node test/replay/record.ts issue-card                  those of one workflow
 *     npx node test/replay/record.ts issue-card/refused          one
 *
 * A history is `histories/<workflow>/<outcome>.json`. The modules of this folder say how each outcome comes about.
 */
const asked = process.argv.slice(2);
const names = Object.keys(RECORDINGS).filter(
  (name) => asked.length === 0 || asked.some((one) => name === one || name.startsWith(`${one}/`)),
);
if (names.length === 0) throw new Error(`no such workflow or outcome: ${asked.join(', ')}`);

installRuntime(pino({ level: 'error' }, process.stderr));
const stopServers = await startServers();
const failed: string[] = [];
const deadlines = { issuanceDeadlineMs: 2_000, topUpDeadlineMs: 2_000, withdrawalDeadlineMs: 2_000 };
const stack = await startTestStack({ cardCreationWaitMs: 30_000, ...deadlines });
try {
  // A few at a time, so that a busy machine makes none of them time out. If one fails, the others go on.
  await Promise.all(
    inParallel(
      6,
      names.map((name) => () => record(name).catch((error: unknown) => failed.push(`${name}: ${error}`))),
    ),
  );
} finally {
  await stack.stop();
  await stopServers();
}
for (const why of failed) console.error(`could not record ${why}`);
process.exit(failed.length === 0 ? 0 : 1);

async function record(name: string): Promise<void> {
  const recording = RECORDINGS[name];
  if (recording === undefined) throw new Error(`there is no recording of ${name}`);
  const workflow = await recording(stack);
  await workflow.result();
  const history = withoutMachine(historyToJSON(await workflow.fetchHistory()));
  const file = historyFile(name);
  await mkdir(new URL('./', file), { recursive: true });
  await writeFile(file, history);
  console.log(`recorded ${name}`);
}

/** An event a line, without what is specific to this machine: the worker's name, and the paths in stack traces. */
function withoutMachine(history: string): string {
  const withoutPaths = (key: string, value: unknown) => (key === 'stackTrace' ? '' : value);
  const { events } = JSON.parse(history, withoutPaths) as { events: object[] };
  const lines = events.map((event) => JSON.stringify(event)).join(',\n');
  return `{"events":[\n${lines}\n]}\n`.replaceAll(`${process.pid}@${hostname()}`, 'recorder');
}

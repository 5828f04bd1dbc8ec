import { mkdirSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { pino } from 'pino';
import { installRuntime } from '../../temporal/install-runtime.ts';
import { stopTestPostgres } from '../support/postgres.ts';
import { startTestStack } from '../support/stack.ts';
import { stopTestTemporal, testTemporal } from '../support/temporal.ts';
import { historyFile, RECORDINGS } from './recordings.ts';

/**
 * Records histories anew: `node test/replay/record.ts [beginning of their names]`, after a change of a workflow that has
 * been versioned, or for an outcome that is new. Histories of older code stay valid only as long as they replay.
 */
const [beginning = ''] = process.argv.slice(2);
installRuntime(pino({ level: 'error' }, process.stderr));
await testTemporal();
const deadlines = { issuanceDeadlineMs: 6_000, topUpDeadlineMs: 6_000 };
const stack = await startTestStack({ cardCreationWaitMs: 30_000, ...deadlines });
try {
  await Promise.all(
    Object.entries(RECORDINGS)
      .filter(([name]) => name.startsWith(beginning))
      .map(async ([name, record]) => {
        const workflow = await record(stack);
        await workflow.result();
        const history = cleaned(historyToJSON(await workflow.fetchHistory()));
        mkdirSync(new URL('./', historyFile(name)), { recursive: true });
        writeFileSync(historyFile(name), history);
        console.log(`recorded ${name}`);
      }),
  );
} finally {
  await stack.stop();
  await stopTestTemporal();
  await stopTestPostgres();
}
process.exit(0);

/** Without what belongs to the machine it was recorded on: the worker's name, and the paths in stack traces. */
function cleaned(history: string): string {
  const withoutPaths = (key: string, value: unknown) => (key === 'stackTrace' ? '' : value);
  const identity = `${process.pid}@${hostname()}`;
  return `${JSON.stringify(JSON.parse(history, withoutPaths), null, 1).replaceAll(identity, 'recorder')}\n`;
}

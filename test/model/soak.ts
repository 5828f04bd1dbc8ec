import { parseArgs } from 'node:util';
import { pino } from 'pino';
import { installRuntime } from '../../temporal/install-runtime.ts';
import { stopTestPostgres } from '../support/postgres.ts';
import { stopTestTemporal, testTemporal } from '../support/temporal.ts';
import { play } from './play.ts';
import { drawScript, startSeed } from './seed.ts';
import { startService } from './start-service.ts';
import { describeTally, newTally, operationsOf } from './tally.ts';

/**
 * `npm run soak [-- --minutes N]`: the model test for as long as is asked, while workers, an API and PostgreSQL are
 * killed -9 in turn. Exit code 1, and the script's seed, at the first difference; 2 for wrong usage.
 */
const SIZE = { rounds: 6, lanes: 24, depositLanes: 7 };
const PROGRESS_MS = 30_000;

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '30' } } });
const minutes = Number(values.minutes);
if (!(minutes > 0)) {
  console.error(`--minutes takes a number above zero, not "${values.minutes}".`);
  process.exit(2);
}

installRuntime(pino({ level: 'fatal' }, process.stderr));
await testTemporal();
const service = await startService(['worker', 'PostgreSQL', 'API']);
const startedAt = Date.now();
const isOver = () => Date.now() - startedAt >= minutes * 60_000;
const tally = newTally();
const first = startSeed();
let seed = first;

const describeProgress = () => {
  const seconds = Math.round((Date.now() - startedAt) / 1_000);
  const kills = [...tally.seen].filter(([what]) => what.startsWith('killed')).map(([, times]) => times);
  const killed = kills.reduce((sum, times) => sum + times, 0);
  return `${seconds} s: ${operationsOf(tally)} operations, ${killed} kills, script ${seed - first + 1} (MODEL_SEED=${seed})`;
};
const progress = setInterval(() => console.log(describeProgress()), PROGRESS_MS);
let failed = false;
try {
  for (; !isOver(); seed++) {
    await play(service, drawScript(seed, SIZE), tally, { kills: (round) => round % 2 === 1, isOver });
  }
} catch (error) {
  failed = true;
  console.error(error instanceof Error ? error.message : error);
} finally {
  clearInterval(progress);
  console.log(describeTally(tally));
  console.log(`${describeProgress()}, ${failed ? 'a difference' : 'no difference'}`);
  await service.stop();
  await stopTestTemporal();
  await stopTestPostgres();
}
process.exit(failed ? 1 : 0);

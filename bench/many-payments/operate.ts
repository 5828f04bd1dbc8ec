import { runOperator } from '../../operator/program.ts';
import { readOperatorConfig } from '../../platform/config/operator.ts';
import { readPeakMb } from '../support/measure.ts';
import type { Operated } from './start-operator.ts';

/** The operator's command line in a process of its own, which tells its parent what it took. */
const startedAt = performance.now();
let printed = '';
let log = '';
const code = await runOperator([...process.argv.slice(2), '--json'], {
  readConfig: readOperatorConfig,
  actor: 'bench@here',
  out: (text) => {
    printed += text;
  },
  err: (text) => {
    log += text;
  },
  // Nothing is under way.
  reconcileGraceMs: 10,
});
const seconds = (performance.now() - startedAt) / 1_000;
process.send?.({ code, printed, log, seconds, peakMb: await readPeakMb() } satisfies Operated);
process.disconnect?.();

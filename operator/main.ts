import { readOperatorConfig } from '../config/operator.ts';
import { currentActor } from './actor.ts';
import { confirm } from './confirm.ts';
import { runOperator } from './run-operator.ts';

/** `npm run operator -- <noun> <verb> [flags]` (operations.md, "Operator's command line"). */

// Whoever reads our output may leave (`… | head`).
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

process.exitCode = await runOperator(process.argv.slice(2), {
  readConfig: readOperatorConfig,
  actor: currentActor(),
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  ...(process.stdin.isTTY && { confirm }),
});

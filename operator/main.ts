import { hostname, userInfo } from 'node:os';
import { createInterface } from 'node:readline/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { readOperatorConfig } from '../platform/config/operator.ts';
import { runOperator } from './program.ts';

/** `npm run operator -- <noun> <verb> [flags]` (docs/operator.md, "The operator's command line"). */

// The reader of a pipe may stop early (`… | head`).
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

process.exitCode = await runOperator(process.argv.slice(2), {
  readConfig: readOperatorConfig,
  actor: currentActor(),
  out: (text) => process.stdout.write(text),
  outRead,
  err: (text) => process.stderr.write(text),
  confirm: process.stdin.isTTY ? confirm : undefined,
});

/** The operating system's user and the machine. */
function currentActor(): string {
  return `${userName()}@${hostname()}`;
}

/** Waits for the reader of a pipe, so that a long output needs little memory. */
async function outRead(): Promise<boolean> {
  while (process.stdout.writableNeedDrain && !process.stdout.destroyed) await sleep(10);
  return !process.stdout.destroyed;
}

function userName(): string {
  try {
    return userInfo().username;
  } catch (error) {
    // In a container, a user may have a number but no name.
    if ((error as NodeJS.ErrnoException).code === 'ERR_SYSTEM_ERROR') return `uid ${process.getuid?.()}`;
    throw error;
  }
}

/** Asks on standard error, since standard output may be a pipe; any answer but yes means no. */
async function confirm(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim());
  } finally {
    terminal.close();
  }
}

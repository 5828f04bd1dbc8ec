import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { until } from '../until.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** Runs `npm start` or another script of the local stack in a process of its own. */
export function runStack(
  script: 'start' | 'reset' | 'demo' | 'workbench' | 'tron/main',
  env: Record<string, string>,
  args: readonly string[] = [],
) {
  const options = { cwd: ROOT, env: { ...process.env, ...env } };
  const child = spawn(process.execPath, [`dev/${script}.ts`, ...args], options);
  const lines: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => lines.push(line));
  }
  let over = false;
  const ended: Promise<number | string> = once(child, 'close').then(([code, signal]) => {
    over = true;
    return code ?? signal;
  });
  /** Waits for a line; fails when the process ends without printing it. */
  const printed = (pattern: RegExp) =>
    until(`a line like ${pattern}`, () => {
      const line = lines.find((candidate) => pattern.test(candidate));
      if (line === undefined && over) throw new Error(`ended without ${pattern}:\n${lines.join('\n')}`);
      return line;
    });
  return {
    pid: child.pid as number,
    lines,
    printed,
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    hasEnded: () => over,
    ended,
  };
}

export type StackProcess = ReturnType<typeof runStack>;

/** What is recorded of a stack's children: the newest pid of each. */
export function childrenOf(dataDir: string): Map<string, number> {
  const entries: { name: string; pid: number }[] = JSON.parse(
    readFileSync(join(dataDir, 'children.json'), 'utf8'),
  );
  return new Map(entries.map(({ name, pid }) => [name, pid]));
}

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface Operated {
  code: number;
  /** JSON. */
  printed: string;
  log: string;
  seconds: number;
  /** The most memory that the process had. */
  peakMb: number;
}

/** Runs a command of the operator's in a process of its own. @throws Error unless it succeeds */
export async function operate(args: readonly string[], env: Record<string, string>): Promise<Operated> {
  const child = fork(fileURLToPath(new URL('./operate.ts', import.meta.url)), args, {
    env: { ...process.env, ...env },
  });
  const exited = once(child, 'exit');
  const operated = (await Promise.race([once(child, 'message'), exited]))[0] as Operated | number | null;
  await exited;
  if (typeof operated !== 'object' || operated === null) throw new Error(`${args.join(' ')} ended early`);
  if (operated.code !== 0) throw new Error(`${args.join(' ')}: ${operated.log}${operated.printed}`);
  return operated;
}

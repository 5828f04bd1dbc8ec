import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';

/**
 * Tells a running process from a later one with the same pid: it is the time of its start, as this system
 * writes it. Undefined if no such process runs. A process that has ended and only waits to be reaped does not
 * run.
 */
export function processIdentity(pid: number): string | undefined {
  return process.platform === 'linux' ? linuxIdentity(pid) : psIdentity(pid);
}

function linuxIdentity(pid: number): string | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return undefined;
    throw error;
  }
  // The fields after the name, which is in parentheses and may hold any character: 3 is the state, 22 the
  // start in ticks.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, start] = [fields[0], fields[19]];
  if (state === 'Z' || state === 'X') return undefined;
  return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}/${start}`;
}

function psIdentity(pid: number): string | undefined {
  const { stdout, error } = spawnSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' });
  if (error !== undefined) throw error;
  const [state = '', ...start] = stdout.trim().split(/\s+/);
  return state === '' || state.startsWith('Z') ? undefined : start.join(' ');
}

/**
 * The command line of a running process; undefined if none has this pid, or if it has ended and is not
 * reaped.
 */
export async function commandLine(pid: number): Promise<string | undefined> {
  const text = process.platform === 'linux' ? await fromProc(pid) : await fromPs(pid);
  return text === '' ? undefined : text;
}

async function fromProc(pid: number): Promise<string> {
  try {
    return (await readFile(`/proc/${pid}/cmdline`, 'utf8')).replaceAll('\0', ' ').trim();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return '';
    throw error;
  }
}

async function fromPs(pid: number): Promise<string> {
  try {
    return (await promisify(execFile)('ps', ['-ww', '-o', 'command=', '-p', String(pid)])).stdout.trim();
  } catch (error) {
    // `ps` exits with 1 if no process has this pid.
    if ((error as { code?: unknown }).code === 1) return '';
    throw error;
  }
}

/**
 * Sends a signal, unless the process has ended already. @param pid of a process, or minus that of a process
 * group
 */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/**
 * Ends this very process, and no later one with its pid: it has 5 s after each signal.
 * @throws Error if it still runs after the last one
 */
export async function endProcess(
  { name, pid, identity }: { name: string; pid: number; identity: string | undefined },
  signals: readonly NodeJS.Signals[],
): Promise<void> {
  const runs = () => identity !== undefined && processIdentity(pid) === identity;
  for (const signal of signals) {
    if (!runs()) return;
    signalProcess(pid, signal);
    for (const giveUpAt = Date.now() + 5_000; runs() && Date.now() < giveUpAt; ) await delay(50);
  }
  if (runs()) throw new Error(`${name} (process ${pid}) does not end; kill it by hand`);
}

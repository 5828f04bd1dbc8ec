import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/**
 * Tells a running process from a later one with the same pid: when it began, in the words of this system. Undefined
 * where no such process runs; one that has ended and only waits to be reaped does not run.
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
  // After the name, which is in parentheses and may hold any character: field 3 is the state, 22 the start in ticks.
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

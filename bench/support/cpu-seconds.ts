import { readFile } from 'node:fs/promises';

const TICKS_PER_SECOND = 100;

/** The processor time a process has used so far, its threads together; NaN where there is no /proc to ask. */
export async function cpuSecondsOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return '';
  });
  // After the name, which can hold blanks, in parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11] ?? Number.NaN) + Number(fields[12] ?? Number.NaN)) / TICKS_PER_SECOND;
}

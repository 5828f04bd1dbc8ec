import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

/** The command line of a running process; undefined where none has this pid, or where it has ended unreaped. */
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
    // `ps` ends with 1 for a pid that is not there.
    if ((error as { code?: unknown }).code === 1) return '';
    throw error;
  }
}

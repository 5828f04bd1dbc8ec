import { execFile } from 'node:child_process';
import { readdir, readFile, readlink, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { commandLine, endProcess, processIdentity } from '../process/identity.ts';

/**
 * Clears what a killed server has left behind, so that the next one can start. Does nothing while the server
 * runs.
 *
 * `postmaster.pid`: PostgreSQL overlooks it if no process has that pid. It refuses to start if one has:
 * another program, or a dead process that nobody has reaped (in a container without init).
 *
 * Processes: PostgreSQL refuses to start while one of them uses the old shared memory. Most end with the
 * first one. One that waits for a lock whose holder was killed never does.
 * @throws if a process of the killed server does not end
 */
export async function clearDeadServer(dataDir: string): Promise<void> {
  const lockFile = join(dataDir, 'postmaster.pid');
  const pid = await firstProcess(lockFile);
  if (pid === undefined) return;
  const command = await commandLine(pid);
  if (command?.includes(dataDir) && command.includes('postgres')) return;
  for (const left of await processesIn(dataDir)) {
    const killed = { name: 'a killed PostgreSQL server', pid: left, identity: processIdentity(left) };
    await endProcess(killed, ['SIGKILL']);
  }
  await rm(lockFile);
}

async function firstProcess(lockFile: string): Promise<number | undefined> {
  try {
    return Number.parseInt(await readFile(lockFile, 'utf8'), 10);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** All processes of a PostgreSQL server, and no others, have its data folder as their working directory. */
async function processesIn(dataDir: string): Promise<number[]> {
  const folder = await realpath(dataDir);
  return process.platform === 'linux' ? fromProc(folder) : fromLsof(folder);
}

async function fromProc(folder: string): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  // The link of a process that has ended, or that another user runs, can't be read.
  const folders = await Promise.all(pids.map((pid) => readlink(`/proc/${pid}/cwd`).catch(() => undefined)));
  return pids.filter((_, i) => folders[i] === folder);
}

async function fromLsof(folder: string): Promise<number[]> {
  try {
    // A line `p123` for each process, followed by a line `n/folder`.
    const { stdout } = await promisify(execFile)('lsof', ['-a', '-c', 'postgres', '-d', 'cwd', '-Fpn']);
    const processes = stdout.split(/^p/m).map((lines) => lines.split('\n'));
    return processes.filter((lines) => lines.includes(`n${folder}`)).map(([pid]) => Number(pid));
  } catch (error) {
    // `lsof` ends with 1 if it finds nothing.
    if ((error as { code?: unknown }).code === 1) return [];
    throw error;
  }
}

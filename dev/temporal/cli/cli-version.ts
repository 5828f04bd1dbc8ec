import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** The oldest server that can skip a workflow's time (design/runtime.md). */
export const OLDEST_SERVER = '1.32';

/** The version of the server inside a `temporal` executable: it answers `temporal version 1.9.0 (Server 1.32.0, …)`. */
export async function serverVersionOf(path: string): Promise<string> {
  const { stdout } = await promisify(execFile)(path, ['--version'], { timeout: 20_000 });
  const version = /\bServer v?(\d+\.\d+[\w.-]*)/.exec(stdout)?.[1];
  if (version === undefined) {
    throw new Error(`${path} --version does not name its server: ${stdout.trim().slice(0, 200)}`);
  }
  return version;
}

export function isNewEnough(serverVersion: string): boolean {
  const [major = 0, minor = 0] = serverVersion.split('.').map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = OLDEST_SERVER.split('.').map(Number);
  return major > oldestMajor || (major === oldestMajor && minor >= oldestMinor);
}

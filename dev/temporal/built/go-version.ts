import { execFile } from 'node:child_process';
import { tmpdir } from 'node:os';
import { promisify } from 'node:util';
import { childEnvironment, isForGo } from '../../process/child-environment.ts';

export const OLDEST_GO = '1.26';

/** The version of the Go on this PATH, such as `1.26.8`; undefined where there is none. */
export async function goVersionOf(searchPath: string): Promise<string | undefined> {
  try {
    // Away from any go.mod, which could ask for another toolchain.
    const options = {
      cwd: tmpdir(),
      env: { ...childEnvironment(isForGo), PATH: searchPath },
      timeout: 20_000,
    };
    const { stdout } = await promisify(execFile)('go', ['env', 'GOVERSION'], options);
    return stdout.trim().replace(/^go/, '');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

export function isGoNewEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map((part) => Number.parseInt(part, 10));
  const [oldestMajor = 0, oldestMinor = 0] = OLDEST_GO.split('.').map(Number);
  return major > oldestMajor || (major === oldestMajor && minor >= oldestMinor);
}

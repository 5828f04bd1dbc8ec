import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const DIE = fileURLToPath(new URL('./die-at-commit.ts', import.meta.url));

/** When a process is killed -9 at its only COMMIT, and whether that has taken place. */
export const ENDS = { 'before 1': false, 'after 1': true } as const;
export type End = keyof typeof ENDS;

/**
 * Runs a command line of the operator in a process of its own.
 * @param end where it is killed, if it is to be
 * @returns its exit code, or null if it was killed, and what it wrote
 */
export function operateInProcess(
  env: NodeJS.ProcessEnv,
  args: readonly string[],
  end?: End,
): Promise<{ code: number | null; out: string; err: string }> {
  const killed = end === undefined ? [] : ['--import', DIE];
  return new Promise((done) => {
    execFile(
      process.execPath,
      [...killed, 'operator/main.ts', ...args],
      { cwd: ROOT, env: { PATH: process.env.PATH, ...env, DIE_AT_COMMIT: end } },
      (error, out, err) =>
        done({ code: error === null ? 0 : (error.code as unknown as number | null), out, err }),
    );
  });
}

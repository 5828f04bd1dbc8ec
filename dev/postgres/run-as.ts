import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface PostgresUser {
  uid: number;
  gid: number;
}

/** PostgreSQL refuses to run as root: then it runs as user `postgres`, who is made where there is none. */
export async function postgresUser(): Promise<PostgresUser | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  return (await findUser()) ?? (await makeUser());
}

async function findUser(): Promise<PostgresUser | undefined> {
  try {
    const [uid, gid] = await Promise.all([run('id', ['-u', 'postgres']), run('id', ['-g', 'postgres'])]);
    return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
  } catch (error) {
    // `id` ends with 1 for a user that does not exist; anything else (no `id` at all) is a fault.
    if ((error as { code?: unknown }).code === 1) return undefined;
    throw error;
  }
}

async function makeUser(): Promise<PostgresUser> {
  await run('useradd', ['--system', '--user-group', '--no-create-home', '--shell', '/bin/false', 'postgres']);
  const user = await findUser();
  if (user === undefined)
    throw new Error('useradd made no user postgres; make one, or run as another user than root');
  return user;
}

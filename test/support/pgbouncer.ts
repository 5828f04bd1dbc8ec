import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../dev/free-port.ts';
import { postgresUser } from '../../dev/postgres/run-as.ts';
import { startChild } from '../../dev/process/child.ts';
import { findProgram } from './find-program.ts';
import { until } from './until.ts';

export function findPgbouncer(): string | undefined {
  return findProgram({ names: ['pgbouncer'], debianPackage: 'pgbouncer' });
}

/**
 * PgBouncer in front of a test server, lending its few connections for one transaction at a time.
 * @param logins whose URLs may be used through it
 * @param settings lines of its configuration beside these
 */
export async function startPgbouncer(
  program: string,
  logins: readonly string[],
  settings: readonly string[] = [],
) {
  const folder = await mkdtemp(join(tmpdir(), 'card-issuing-pgbouncer-'));
  const port = await freePort();
  const known = logins.map((login) => new URL(login));
  const [server] = known as [URL];
  const users = join(folder, 'users.txt');
  await writeFile(users, known.map(({ username, password }) => `"${username}" "${password}"\n`).join(''));
  const configuration = join(folder, 'pgbouncer.ini');
  await writeFile(
    configuration,
    [
      '[databases]',
      `* = host=${server.hostname} port=${server.port}`,
      '[pgbouncer]',
      `listen_addr = 127.0.0.1`,
      `listen_port = ${port}`,
      'unix_socket_dir =',
      'auth_type = scram-sha-256',
      `auth_file = ${users}`,
      'pool_mode = transaction',
      'default_pool_size = 4',
      'max_client_conn = 300',
      ...settings,
      '',
    ].join('\n'),
  );
  // It refuses to run as root, and the other user has to reach its files.
  await chmod(folder, 0o755);
  const user = await postgresUser();
  const child = await startChild({
    name: 'PgBouncer',
    command: program,
    args: [configuration],
    cwd: '/',
    ...(user && { user }),
    logFile: join(folder, 'pgbouncer.log'),
  });
  let ended: string | undefined;
  void child.exited.then((how) => {
    ended = [how, ...child.lastLines()].join('\n');
  });
  await until('PgBouncer answers', async () => {
    if (ended !== undefined) throw new Error(`PgBouncer ended: ${ended}`);
    return isListening(port);
  });
  return {
    /** The same database through PgBouncer. */
    through(url: string) {
      const pooled = new URL(url);
      pooled.host = `127.0.0.1:${port}`;
      return pooled.href;
    },
    async stop() {
      await child.stop([{ signal: 'SIGINT', graceMs: 5_000 }]);
      await rm(folder, { recursive: true });
    },
  };
}

export type Pgbouncer = Awaited<ReturnType<typeof startPgbouncer>>;

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ host: '127.0.0.1', port });
    const say = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('connect', () => say(true));
    socket.once('error', () => say(false));
  });
}

import { withClient } from './with-client.ts';

interface Login {
  user: string;
  password: string;
  /** The group role, without a login of its own, whose rights are the only ones this login has. */
  role: string;
}

/** Creates a login that is a member of this one group role. If the login exists, it gets the password. */
export async function createLogin(ownerUrl: string, { user, password, role }: Login): Promise<void> {
  await withClient(ownerUrl, async (client) => {
    const name = client.escapeIdentifier(user);
    const { rowCount } = await client.query('SELECT FROM pg_roles WHERE rolname = $1', [user]);
    const verb = rowCount === 0 ? 'CREATE' : 'ALTER';
    await client.query(`${verb} ROLE ${name} LOGIN PASSWORD ${client.escapeLiteral(password)}`);
    await client.query(`GRANT ${client.escapeIdentifier(role)} TO ${name}`);
  });
}

/** The URL of the same database for this login. */
export function urlFor(url: string, { user, password }: Pick<Login, 'user' | 'password'>): string {
  const own = new URL(url);
  own.username = user;
  own.password = password;
  return own.href;
}

/** The URL of another database on the same server. */
export function databaseUrl(serverUrl: string, database: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${database}`;
  return url.href;
}

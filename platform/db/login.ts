import pg, { type ClientBase } from 'pg';
import { destroyClient } from './connection.ts';
import { SessionRefused } from './session.ts';

/**
 * What API and worker have in common: their roles are members of it. The migrations create all roles, but no
 * logins.
 */
export const SERVICE_ROLE = 'card_issuing_app';
/** The role of the API, with the worker that it hosts. */
export const API_ROLE = 'card_issuing_api';
export const WORKER_ROLE = 'card_issuing_worker';
/** The role of the operator's command line. */
export const OPERATOR_ROLE = 'card_issuing_operator';

export type Role = typeof SERVICE_ROLE | typeof API_ROLE | typeof WORKER_ROLE | typeof OPERATOR_ROLE;

export interface LoginRules {
  /** If omitted, the login works as itself, with the rights of all its roles. */
  role?: Role | undefined;
  /**
   * Whether there is a known connection pooler in between, which lends a server connection per transaction.
   */
  pooled: boolean;
  /**
   * Called with the reason if the login could leave the role for more rights. If omitted, such a login is
   * refused.
   */
  onOwnerLogin?: ((why: string) => void) | undefined;
  /** Called with the reason if the login could also work as the other of API and worker. */
  onSharedLogin?: ((why: string) => void) | undefined;
}

/** The login can't be used safely with this role, or there is a pooler that was not configured. */
export class LoginRefused extends SessionRefused {
  override name = 'LoginRefused';
}

/**
 * Checks a new connection: it must use the role, its commits must wait for the disk, its login must not be
 * able to leave the role for more rights, and there must be no pooler in between unless one is configured.
 * @throws LoginRefused
 */
export async function checkLogin(client: ClientBase, rules: LoginRules): Promise<void> {
  const { rows } = await client.query<Found>(FIND, [rules.role ?? null]);
  const { works_as, login, backend_pid, synchronous_commit, power, shared_role } = rows[0] as Found;
  const login_ = `The login "${login}"`;
  const role = rules.role ?? login;
  if (!rules.pooled && backend_pid !== (client as ClientBase & { processID?: number }).processID) {
    throw new LoginRefused(
      'A connection pooler stands between this process and PostgreSQL. Set DATABASE_DIRECT_URL to PostgreSQL itself: ' +
        'that declares the pooler, and gives LISTEN its own connection. The command line needs PostgreSQL itself as DATABASE_URL.',
    );
  }
  if (rules.role !== undefined && works_as !== role) {
    throw new LoginRefused(
      `${login_} works as "${works_as}", not as ${role}: something dropped the startup settings that the process ` +
        `sent, as connection poolers do. Run ALTER ROLE "${login}" SET role = '${role}' as the owner of the ` +
        'database and reconnect the pooler (docs/operating.md, "Behind a pooler").',
    );
  }
  if (synchronous_commit === 'off') {
    throw new LoginRefused(
      `${login_} commits without waiting for the disk (synchronous_commit is off), so a crash of PostgreSQL could undo what ` +
        `a partner was already told. Run ALTER ROLE "${login}" SET synchronous_commit = 'on' as the owner of the database, or ` +
        'remove the setting from the database or the server, then reconnect (docs/operating.md, "Logins").',
    );
  }
  if (power === null) {
    if (shared_role !== null) rules.onSharedLogin?.(`${login_} is a member of ${shared_role}`);
    return;
  }
  const why = `${login_} ${power}`;
  if (rules.onOwnerLogin === undefined) {
    throw new LoginRefused(
      `${why}, so a bug in this process could change the ledger at will. Give DATABASE_URL a login that is a member ` +
        `only of ${role} (docs/operating.md, "Logins"), or set ALLOW_OWNER_LOGIN=true to accept the risk.`,
    );
  }
  rules.onOwnerLogin(why);
}

/**
 * Runs {@link checkLogin} once for a URL that is not open yet. A database that can't be reached is not an
 * error.
 */
export async function checkLoginAt(databaseUrl: string, rules: LoginRules): Promise<void> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    options: rules.role && `-c role=${rules.role}`,
    connectionTimeoutMillis: 5_000,
  });
  client.on('error', () => {});
  try {
    await client.connect();
    await checkLogin(client, rules);
  } catch (error) {
    const refusal = explainRefusedSession(error, rules.role);
    if (refusal !== undefined) throw refusal;
  } finally {
    destroyClient(client);
  }
}

/** Why a connection was refused, if a retry would not help; otherwise undefined. */
export function explainRefusedSession(error: unknown, role: Role | undefined): SessionRefused | undefined {
  if (error instanceof SessionRefused) return error;
  const { code, message = '' } = error as { code?: string; message?: string };
  if (code === INSUFFICIENT_PRIVILEGE && message.includes('set role')) {
    return new LoginRefused(
      `The login of DATABASE_URL is not a member of ${role}: use one that is. docs/operating.md ("Logins") shows how to create it.`,
      { cause: error },
    );
  }
  if (code === PROTOCOL_VIOLATION && message.includes('startup parameter')) {
    return new LoginRefused(
      `The connection pooler at DATABASE_URL refuses the startup settings of this process (${message}). Set DATABASE_DIRECT_URL to ` +
        'PostgreSQL itself, and give the login its settings there (docs/operating.md, "Behind a pooler").',
      { cause: error },
    );
  }
  return undefined;
}

const INSUFFICIENT_PRIVILEGE = '42501';
const PROTOCOL_VIOLATION = '08P01';

interface Found {
  works_as: string;
  login: string;
  backend_pid: number;
  synchronous_commit: string;
  /** The most dangerous right that the login has beyond the role; null if there is none. */
  power: string | null;
  /** The role of API or worker that the login could also work as; null if there is none. */
  shared_role: string | null;
}

// A membership counts whether it is inherited or needs SET ROLE: either way, the login can use it.
const FIND = `
  WITH may_be AS (SELECT * FROM pg_roles WHERE pg_has_role(session_user, oid, 'MEMBER')),
  beyond AS (SELECT rolname FROM may_be WHERE NOT pg_has_role(coalesce($1::name, session_user), oid, 'MEMBER')),
  ours AS (SELECT oid, nspname, nspowner FROM pg_namespace WHERE nspname IN ('public', 'ledger', 'simulated_network')),
  powers (rank, power) AS (
    SELECT 1, 'is a superuser, or can become one' FROM may_be WHERE rolsuper
    UNION ALL SELECT 2, 'owns the schema ' || nspname || ', or can become who does' FROM ours JOIN may_be m ON m.oid = nspowner
    UNION ALL SELECT 3, 'owns ' || nspname || '.' || relname || ', or can become who does'
      FROM pg_class c JOIN ours ON ours.oid = relnamespace JOIN may_be m ON m.oid = relowner
    UNION ALL SELECT 4, 'owns the function ' || nspname || '.' || proname || ', or can become who does'
      FROM pg_proc p JOIN ours ON ours.oid = pronamespace JOIN may_be m ON m.oid = proowner
    UNION ALL SELECT 5, 'may make roles, and so become another one' FROM may_be WHERE rolcreaterole
    UNION ALL SELECT 6, 'may copy or read around every right (BYPASSRLS, REPLICATION)'
      FROM may_be WHERE rolbypassrls OR rolreplication
    UNION ALL SELECT 7, 'is a member of ' || rolname FROM beyond
      WHERE rolname IN ('${SERVICE_ROLE}', '${OPERATOR_ROLE}',
        'pg_execute_server_program', 'pg_write_server_files', 'pg_read_server_files', 'pg_write_all_data')
    UNION ALL SELECT 8, 'may write ledger.' || relname FROM pg_class c JOIN ours ON ours.oid = relnamespace, may_be m
      WHERE nspname = 'ledger' AND relkind IN ('r', 'p') AND has_table_privilege(m.oid, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE'))
  SELECT current_user AS works_as, session_user AS login, pg_backend_pid() AS backend_pid,
    current_setting('synchronous_commit') AS synchronous_commit,
    (SELECT power FROM powers ORDER BY rank, power LIMIT 1) AS power,
    (SELECT rolname FROM beyond WHERE rolname IN ('${API_ROLE}', '${WORKER_ROLE}') ORDER BY rolname LIMIT 1) AS shared_role`;

import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { Refusal } from '../domain/refusal.ts';
import { scramVerifier } from '../platform/crypto/scram.ts';
import { OPERATOR_ROLE } from '../platform/db/login.ts';
import { query, type Reader, readStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import { type Operator, recordAudit } from '../requests/operator-context.ts';

/** A database login of an operator. */
interface OperatorLogin {
  id: string;
  object: 'login';
  status: 'active' | 'revoked';
  /** How many of its sessions are open. */
  sessions: number;
}

/** A role's name that needs no quotes in PostgreSQL, which keeps pg_ for itself. */
export const LOGIN_NAME = /^(?!pg_)[a-z][a-z0-9_]{0,62}$/;

/**
 * Creates a login with the operators' rights and no others (docs/operating.md, "Logins"). The owner of the
 * database does so.
 * @returns the password, which nothing keeps
 * @throws Refusal if there is such a role already, or this is not the owner
 */
export function createOperatorLogin({ orm, actor }: Operator, name: string): Promise<string> {
  const password = randomBytes(24).toString('base64url');
  return transaction(orm, async (tx) => {
    await mustMakeRoles(tx);
    const [taken] = await findRole(tx, { name });
    if (taken !== undefined)
      throw new Refusal(`There already is a role ${name} at this PostgreSQL server: choose another name.`);
    const role = quoted(name);
    await query(
      tx,
      `CREATE ROLE ${role} LOGIN PASSWORD '${scramVerifier(password)}' IN ROLE ${OPERATOR_ROLE}`,
    );
    recordAudit(tx, { actor, action: 'login.create', subject: name, detail: {} });
    return password;
  });
}

/**
 * Refuses an operator's login for good, and ends its sessions. The role stays, so that its name in the audit
 * log is never another person's.
 * @throws Refusal if no operator has such a login, or this is not the owner
 */
export async function revokeOperatorLogin({ orm, actor }: Operator, name: string): Promise<void> {
  await transaction(orm, async (tx) => {
    await mustMakeRoles(tx);
    const { status } = await readOperatorLogin(tx, name);
    if (status === 'revoked') return;
    await query(tx, `ALTER ROLE ${quoted(name)} NOLOGIN PASSWORD NULL`);
    recordAudit(tx, { actor, action: 'login.revoke', subject: name, detail: {} });
  });
  // After the commit, so that no session begins later. Only a member of the role may end its sessions.
  await transaction(orm, async (tx) => {
    await query(tx, `GRANT ${quoted(name)} TO CURRENT_USER`);
    await query(tx, 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1', [name]);
    await query(tx, `REVOKE ${quoted(name)} FROM CURRENT_USER`);
  });
}

/** @throws Refusal if no operator has such a login */
export async function readOperatorLogin(em: Reader, name: string): Promise<OperatorLogin> {
  const login = (await readOperatorLogins(em)).find(({ id }) => id === name);
  if (login === undefined) throw new Refusal(`No operator has a login ${name}: run "operator login list".`);
  return login;
}

/** Those of operators, by name, without the owner's. */
export const readOperatorLogins = (em: Reader): Promise<OperatorLogin[]> => logins(em, {});

const logins = readStatement(
  () => sql<OperatorLogin>`
    SELECT r.rolname AS id, 'login' AS object,
      CASE WHEN r.rolcanlogin THEN 'active' ELSE 'revoked' END AS status,
      (SELECT count(*)::int FROM pg_stat_activity a WHERE a.usename = r.rolname) AS sessions
    FROM pg_roles r
    WHERE pg_has_role(r.oid, 'card_issuing_operator', 'MEMBER')
      AND NOT pg_has_role(r.oid, 'card_issuing_app', 'MEMBER')
      AND r.rolname <> 'card_issuing_operator'
    ORDER BY r.rolname`,
);

const findRole = readStatement(
  (_, { name }: { name: string }) => sql<{ oid: number }>`SELECT oid FROM pg_roles WHERE rolname = ${name}`,
);

/** @throws Refusal */
async function mustMakeRoles(em: Reader): Promise<void> {
  const [me] = await ownRights(em, {});
  if (me?.makesRoles) return;
  throw new Refusal(
    "Only the owner of the database can create and revoke logins: run this with the owner's DATABASE_URL, as npm run migrate.",
  );
}

const ownRights = readStatement(
  () => sql<{ makesRoles: boolean }>`
    SELECT rolcreaterole OR rolsuper AS "makesRoles" FROM pg_roles WHERE rolname = session_user`,
);

/** An identifier, which can't be a parameter of the statement. */
function quoted(name: string): string {
  if (!LOGIN_NAME.test(name)) throw new Error('this is no name of a login');
  return `"${name}"`;
}

import { sql } from 'kysely';
import { type Reader, readStatement } from './sql.ts';

/**
 * Why PostgreSQL's log can have values of rows in it, cardholders' names among them, with the settings that
 * turn it off; null if it can't. It looks at the settings of all our logins in this database
 * (docs/operating.md, "PostgreSQL's log").
 */
export async function readLoggedValues(em: Reader): Promise<string | null> {
  const rows = await loggedValues(em, {});
  if (rows.length === 0) return null;
  const logins = [...new Set(rows.map(({ login }) => login))].sort();
  const reasons = [...new Set(rows.map(({ reason }) => reason))].sort();
  return `PostgreSQL's log can have values of rows in it, for ${logins.join(', ')}: ${reasons.join('; ')}`;
}

// Of a login's settings, the most special one counts. The last of them is the server's, as this session has
// it.
const loggedValues = readStatement(
  () => sql<{ login: string; reason: string }>`
    WITH ours AS (
      SELECT oid, rolname FROM pg_roles
      WHERE rolcanlogin AND NOT rolsuper
        AND (pg_has_role(oid, 'card_issuing_app', 'MEMBER')
        OR pg_has_role(oid, 'card_issuing_operator', 'MEMBER'))
    ), setting AS (
      SELECT o.rolname, s.name, coalesce((
        SELECT substr(c.config, length(s.name) + 2)
        FROM pg_db_role_setting d, unnest(d.setconfig) c (config)
        WHERE d.setrole IN (0, o.oid) AND starts_with(c.config, s.name || '=')
          AND d.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
        ORDER BY d.setrole <> 0 DESC, d.setdatabase <> 0 DESC LIMIT 1), s.reset_val) AS value
      FROM ours o, pg_settings s
      WHERE s.name IN ('log_parameter_max_length', 'log_error_verbosity', 'log_statement',
        'log_min_duration_statement', 'log_min_duration_sample', 'log_transaction_sample_rate')
    )
    SELECT p.rolname AS login, 'statements are logged with their values (set log_parameter_max_length = 0)' AS reason
    FROM setting p
    WHERE p.name = 'log_parameter_max_length' AND p.value !~ '^0' AND EXISTS (
      SELECT FROM setting s WHERE s.rolname = p.rolname AND (
        (s.name = 'log_statement' AND s.value IN ('mod', 'all'))
        OR (s.name IN ('log_min_duration_statement', 'log_min_duration_sample') AND s.value !~ '^-')
        OR (s.name = 'log_transaction_sample_rate' AND s.value::float8 > 0)))
    UNION ALL
    SELECT p.rolname, 'an error quotes the row that it is about (set log_error_verbosity = terse)'
    FROM setting p WHERE p.name = 'log_error_verbosity' AND p.value <> 'terse'`,
);

import { sql } from 'kysely';
import type { Orm } from '../platform/db/orm.ts';
import { ASYNCHRONOUS_COMMIT, autocommitStatement } from '../platform/db/sql.ts';
import type { LoggedRequestRow } from './logged-request-resource.ts';

/** Writes requests to the log (docs/partners/requests.md), any number of them in one statement. */
export async function logRequests(orm: Orm, rows: readonly LoggedRequestRow[]): Promise<void> {
  if (rows.length > 0) await insert(orm, { rows: JSON.stringify(rows) });
}

// What a crash of PostgreSQL loses is the last second.
const insert = autocommitStatement(
  (_, { rows }: { rows: string }) => sql`
  WITH ${ASYNCHRONOUS_COMMIT}
  INSERT INTO logged_request (id, partner_id, mode, method, path, status, error_code, error_param, api_key_id, address,
    idempotency_key, operation_id, duration_ms)
  SELECT r.* FROM asynchronous_commit, jsonb_to_recordset(${rows}::jsonb) AS r (id text, partner_id text, mode text,
    method text, path text, status smallint, error_code text, error_param text, api_key_id text, address text,
    idempotency_key text, operation_id text, duration_ms integer)
  ON CONFLICT DO NOTHING`,
  { acrossTenants: 'key' },
);

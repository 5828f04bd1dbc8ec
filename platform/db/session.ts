import type { ClientBase } from 'pg';
import { StartRefused } from '../process/run-process.ts';

/** The timeouts that PostgreSQL enforces on a session (docs/decisions/time-limits.md); 0 for none. */
export interface TimeLimits {
  lockMs: number;
  idleInTransactionMs: number;
  statementMs: number;
}

/** In increasing order, and all below the 10 s of an activity's attempt. */
export const SERVICE_LIMITS: TimeLimits = { lockMs: 4_000, idleInTransactionMs: 5_000, statementMs: 8_000 };
/** An operator's statement may read everything. */
export const OPERATOR_LIMITS: TimeLimits = { lockMs: 10_000, idleInTransactionMs: 30_000, statementMs: 0 };
/**
 * Everybody waits behind a migration that waits for a table, so its wait is shorter than a request's wait for
 * a lock.
 */
export const MIGRATION_LIMITS: TimeLimits = { lockMs: 2_000, idleInTransactionMs: 60_000, statementMs: 0 };

const SETTINGS: Record<keyof TimeLimits, string> = {
  lockMs: 'lock_timeout',
  idleInTransactionMs: 'idle_in_transaction_session_timeout',
  statementMs: 'statement_timeout',
};

/** A peer that vanishes silently is noticed within 25 s, even if it owes a response. */
const KEEPALIVES = {
  tcp_keepalives_idle: '10s',
  tcp_keepalives_interval: '5s',
  tcp_keepalives_count: '3',
  tcp_user_timeout: '25s',
};

/** Values that are bound to a statement stay out of the server's log if it fails. */
const LOGGING = { log_parameter_max_length_on_error: '0' };

/** The same for our end. */
export const CLIENT_KEEPALIVE = { keepAlive: true, keepAliveInitialDelayMillis: 10_000 } as const;

/** The startup setting `options` of a session: its limits, and any other settings. */
export function startupOptions(limits: TimeLimits, others: Record<string, string> = {}): string {
  const timeouts = limitNames.map((limit): [string, string] => [SETTINGS[limit], `${limits[limit]}ms`]);
  return (
    [...Object.entries(others), ...timeouts, ...Object.entries(KEEPALIVES), ...Object.entries(LOGGING)]
      // A space would end the value.
      .map(([name, value]) => `-c ${name}=${value.replace(/[\\\s]/g, '\\$&')}`)
      .join(' ')
  );
}

/** The database is available, but must not be used with this session. The message says what to do. */
export class SessionRefused extends StartRefused {}

/** A session without its limits could stop everybody else's. */
export class SessionUnlimited extends SessionRefused {
  override name = 'SessionUnlimited';
}

/**
 * Checks that a new connection's limits are in force, since a connection pooler may drop startup settings. If
 * the server's platform supports it, the server also checks once a second whether a statement's client is
 * still connected.
 * @throws SessionUnlimited
 */
export async function checkSession(client: ClientBase, limits: TimeLimits): Promise<void> {
  const { rows } = await client.query<Record<string, number>>(CHECK);
  const missing = limitNames.filter((limit) => {
    const actualMs = rows[0]?.[SETTINGS[limit]] ?? 0;
    return limits[limit] > 0 && (actualMs === 0 || actualMs > limits[limit]);
  });
  if (missing.length === 0) return;
  const wanted = missing.map((limit) => `${SETTINGS[limit]} = '${limits[limit]}ms'`);
  throw new SessionUnlimited(
    `PostgreSQL did not apply the time limits ${wanted.join(', ')}, which were sent in the startup setting "options". ` +
      'If DATABASE_URL is a connection pooler that drops it, set them for the login that it uses: ' +
      'ALTER ROLE … SET …, or connect directly.',
  );
}

const limitNames = Object.keys(SETTINGS) as (keyof TimeLimits)[];

// A server on Windows refuses client_connection_check_interval, and a refused startup setting would fail the
// whole session.
const CHECK = `
  SELECT ${limitNames
    .map((limit) => SETTINGS[limit])
    .map((name) => `(extract(epoch FROM current_setting('${name}')::interval) * 1000)::float8 AS ${name}`)
    .join(', ')},
    set_config('client_connection_check_interval',
      CASE WHEN version() ~* 'windows|visual c|mingw' THEN '0' ELSE '1s' END, false)`;

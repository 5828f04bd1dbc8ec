import { MikroORM } from '@mikro-orm/postgresql';
import type { ClientBase, Pool } from 'pg';
import { lendInTurns, type PoolShares } from './fair-pool.ts';
import { checkLogin, type LoginRules, refusalOf, SERVICE_ROLE } from './login.ts';
import { PreparedClient } from './prepared-client.ts';
import { ReleasingClient } from './releasing-client.ts';
import {
  CLIENT_KEEPALIVE,
  checkSession,
  SERVICE_LIMITS,
  startupOptions,
  type TimeLimits,
} from './session.ts';
import { query } from './sql.ts';
import { ENTITIES } from './tables.ts';

export type Orm = MikroORM;

export interface OrmOptions extends Partial<LoginRules> {
  databaseUrl: string;
  /** Most connections this process opens. */
  poolSize: number;
  /** How they are shared out; without, first come, first served. */
  shares?: PoolShares;
  /** What the connections are called in pg_stat_activity. */
  applicationName?: string;
  /** {@link SERVICE_LIMITS} where nothing else is said. */
  limits?: TimeLimits;
}

/**
 * Opens the database as the service's role, or the one that is named. A database that can't be reached is no error yet.
 * @throws SessionRefused where it can be reached, but not like this: the login could leave the role or is no member of it,
 * or the limits of the sessions are not in force.
 */
export async function openOrm(options: OrmOptions): Promise<Orm> {
  const { role = SERVICE_ROLE, pooled = false, onOwnerLogin, limits = SERVICE_LIMITS } = options;
  const orm = await MikroORM.init({
    clientUrl: options.databaseUrl,
    entities: ENTITIES,
    pool: { min: 0, max: options.poolSize, idleTimeoutMillis: 30_000 },
    driverOptions: {
      // A pooler of transactions knows no statement that another server connection has prepared, and no `options`.
      ...(pooled
        ? { Client: ReleasingClient }
        : { Client: PreparedClient, options: startupOptions(limits, { role }) }),
      application_name: options.applicationName ?? 'card-issuing',
      connectionTimeoutMillis: 5_000,
      longestAnswerMs: limits.statementMs && limits.statementMs + ANSWER_MARGIN_MS,
      ...CLIENT_KEEPALIVE,
      onConnect: async (client: ClientBase) => {
        await checkLogin(client, { role, pooled, onOwnerLogin });
        await checkSession(client, limits);
      },
      onPoolCreated: (pool: Pool) => lendInTurns(pool, options.poolSize, options.shares),
    },
    forceUtcTimezone: true,
    // A mistyped name is an error, not a new database.
    ensureDatabase: false,
  });
  try {
    await query(orm.em.fork(), 'SELECT');
  } catch (error) {
    const refusal = refusalOf(error, role);
    if (refusal === undefined) return orm;
    await orm.close();
    throw refusal;
  }
  return orm;
}

/** Beyond a statement's own limit: then PostgreSQL, or the way there, is gone. */
const ANSWER_MARGIN_MS = 3_000;

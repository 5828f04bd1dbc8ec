import { MikroORM } from '@mikro-orm/postgresql';
import type { ClientBase, Pool } from 'pg';
import { ENTITIES } from './entities/entities.ts';
import { lendInTurns, type PoolShares } from './fair-pool.ts';
import { PreparedClient } from './prepared-client.ts';
import {
  CLIENT_KEEPALIVE,
  checkSession,
  SERVICE_LIMITS,
  SessionUnlimited,
  startupOptions,
  type TimeLimits,
} from './session.ts';
import { query } from './sql.ts';

export type Orm = MikroORM;

/** The role every process works as; the migrations create it and say what it may do. */
export const APP_ROLE = 'card_issuing_app';

export interface OrmOptions {
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
 * Opens the database as {@link APP_ROLE}, whoever the URL logs in as: that role can read the ledger and call its one
 * function, nothing else of it. A database that can't be reached is no error yet.
 * @throws SessionUnlimited where the limits of the sessions are not in force.
 */
export async function openOrm(options: OrmOptions): Promise<Orm> {
  const limits = options.limits ?? SERVICE_LIMITS;
  const orm = await MikroORM.init({
    clientUrl: options.databaseUrl,
    entities: ENTITIES,
    pool: { min: 0, max: options.poolSize, idleTimeoutMillis: 30_000 },
    driverOptions: {
      Client: PreparedClient,
      options: startupOptions(limits, { role: APP_ROLE }),
      application_name: options.applicationName ?? 'card-issuing',
      connectionTimeoutMillis: 5_000,
      longestAnswerMs: limits.statementMs && limits.statementMs + ANSWER_MARGIN_MS,
      ...CLIENT_KEEPALIVE,
      onConnect: (client: ClientBase) => checkSession(client, limits),
      onPoolCreated: (pool: Pool) => lendInTurns(pool, options.poolSize, options.shares),
    },
    forceUtcTimezone: true,
    // A mistyped name is an error, not a new database.
    ensureDatabase: false,
  });
  try {
    await query(orm.em.fork(), 'SELECT');
  } catch (error) {
    if (!(error instanceof SessionUnlimited)) return orm;
    await orm.close();
    throw error;
  }
  return orm;
}

/** Beyond a statement's own limit: then PostgreSQL, or the way there, is gone. */
const ANSWER_MARGIN_MS = 3_000;

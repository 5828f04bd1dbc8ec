import { MikroORM } from '@mikro-orm/postgresql';
import type { ClientBase, Pool } from 'pg';
import type { Logger } from 'pino';
import { lendInTurns, type PoolShares, type PoolUsage } from './fair-pool.ts';
import { readLoggedValues } from './logged-values.ts';
import {
  type API_ROLE,
  checkLogin,
  checkLoginAt,
  type LoginRules,
  refusalOf,
  type WORKER_ROLE,
} from './login.ts';
import { PreparedClient, ReleasingClient } from './pg-client.ts';
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
  /** The limit of connections that this process opens. */
  poolSize: number;
  /** How they are shared out. If omitted: first come, first served. */
  shares?: PoolShares;
  /** The name of the connections in pg_stat_activity. */
  applicationName?: string;
  /** Receives the usage of the connections. */
  onPool?: (usage: PoolUsage) => void;
  /** Default: {@link SERVICE_LIMITS}. */
  limits?: TimeLimits;
  /** Further settings of each session, by name. Not behind a pooler. */
  settings?: Record<string, string>;
}

/**
 * Opens the database as the given role. A database that can't be reached is not an error yet.
 * @throws SessionRefused if it can be reached, but the login could leave the role or is not a member of it, or the sessions'
 * time limits are not in force
 */
export async function openOrm(options: OrmOptions): Promise<Orm> {
  const {
    role,
    pooled = false,
    onOwnerLogin,
    onSharedLogin,
    limits = SERVICE_LIMITS,
    settings = {},
  } = options;
  const orm = await MikroORM.init({
    clientUrl: options.databaseUrl,
    entities: ENTITIES,
    pool: { min: 0, max: options.poolSize, idleTimeoutMillis: 30_000 },
    driverOptions: {
      // MikroORM takes only host, port, login and database from the URL. The driver reads all of it, sslmode included.
      connectionString: options.databaseUrl,
      // Behind a transaction pooler, statements prepared on another server connection don't exist, and `options` don't work.
      ...(pooled
        ? { Client: ReleasingClient }
        : {
            Client: PreparedClient,
            options: startupOptions(limits, { ...(role && { role }), ...settings }),
          }),
      application_name: options.applicationName ?? 'card-issuing',
      connectionTimeoutMillis: 5_000,
      longestAnswerMs: limits.statementMs && limits.statementMs + ANSWER_MARGIN_MS,
      ...CLIENT_KEEPALIVE,
      onConnect: async (client: ClientBase) => {
        await checkLogin(client, { role, pooled, onOwnerLogin, onSharedLogin });
        await checkSession(client, limits);
      },
      onPoolCreated: (pool: Pool) => {
        const usage = lendInTurns(pool, options.poolSize, options.shares);
        options.onPool?.(usage);
      },
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

/** Added to a statement's own limit. After that, PostgreSQL or the network to it counts as gone. */
const ANSWER_MARGIN_MS = 3_000;

export interface ServiceDatabase {
  orm: Orm;
  /** The current usage of its connections; null before the first one was requested. */
  poolUsage(): PoolUsage | null;
  /** PostgreSQL itself, for LISTEN. */
  direct: Pick<LoginRules, 'role' | 'onOwnerLogin'> & { databaseUrl: string };
}

/** How to reach the database, from the configuration. */
export interface DatabaseConfig {
  databaseUrl: string;
  databaseDirectUrl: string | null;
  allowOwnerLogin: boolean;
}

/**
 * Opens the database for API or worker.
 * @throws LoginRefused if a login could leave its role, here or directly, unless the configuration allows it.
 */
export async function openServiceDatabase(
  config: DatabaseConfig,
  logger: Logger,
  options: Omit<OrmOptions, 'databaseUrl' | 'pooled' | 'onOwnerLogin' | 'onSharedLogin' | 'onPool'> & {
    role: typeof API_ROLE | typeof WORKER_ROLE;
  },
): Promise<ServiceDatabase> {
  const { role } = options;
  let warned = false;
  const onOwnerLogin = (why: string) => {
    if (!warned)
      logger.warn({ why }, 'ALLOW_OWNER_LOGIN is set: a bug in this process could change the ledger at will');
    warned = true;
  };
  let warnedOfSharing = false;
  const onSharedLogin = (why: string) => {
    if (!warnedOfSharing)
      logger.warn(
        { why },
        'API and worker share a login, so the ledger lets each post what only the other has to: give each its own ' +
          '(docs/operating.md, "Logins")',
      );
    warnedOfSharing = true;
  };
  const allowed = { onOwnerLogin: config.allowOwnerLogin ? onOwnerLogin : undefined };
  const { databaseUrl, databaseDirectUrl } = config;
  const pooled = databaseDirectUrl !== null;
  if (pooled) await checkLoginAt(databaseDirectUrl, { role, pooled: false, ...allowed });
  let usage: PoolUsage | null = null;
  const onPool = (of: PoolUsage) => {
    usage = of;
  };
  const orm = await openOrm({ ...options, ...allowed, databaseUrl, pooled, onPool, onSharedLogin });
  // The start does not wait for it. If PostgreSQL is down, `attention list` still says it.
  void readLoggedValues(orm.em.fork()).then(
    (why) => {
      if (why !== null) logger.warn({ why }, "PostgreSQL's log can have cardholders' names in it");
    },
    () => {},
  );
  return {
    orm,
    poolUsage: () => usage,
    direct: { databaseUrl: databaseDirectUrl ?? databaseUrl, role, ...allowed },
  };
}

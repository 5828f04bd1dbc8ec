import { Configuration } from '@mikro-orm/core';
import {
  createPostgreSqlTypeParsers,
  type EntityManager,
  MikroORM,
  PostgreSqlDriver,
} from '@mikro-orm/postgresql';
import { type Dialect, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely';
import pg from 'pg';
import type { Logger } from 'pino';
import { Connection } from './connection.ts';
import { ENTITIES } from './entities.ts';
import { readLoggedValues } from './logged-values.ts';
import {
  type API_ROLE,
  checkLogin,
  checkLoginAt,
  explainRefusedSession,
  type LoginRules,
  type WORKER_ROLE,
} from './login.ts';
import { Pool, type PoolShares, type PoolUsage } from './pool.ts';
import {
  CLIENT_KEEPALIVE,
  checkSession,
  SERVICE_LIMITS,
  startupOptions,
  type TimeLimits,
} from './session.ts';
import { query } from './sql.ts';

/** MikroORM on a pool of its own. */
export interface Orm {
  em: EntityManager;
  close(): Promise<void>;
}

export interface OrmOptions extends Partial<LoginRules> {
  databaseUrl: string;
  /** The limit of connections that this process opens. */
  poolSize: number;
  /** How they are shared out. If omitted: first come, first served. */
  shares?: PoolShares;
  /** The name of the connections in pg_stat_activity. */
  applicationName?: string;
  /** Default: {@link SERVICE_LIMITS}. */
  limits?: TimeLimits;
  /** Further settings of each session, by name. Not behind a pooler. */
  settings?: Record<string, string>;
}

/** All pools of a process share what MikroORM finds out about the entities, which takes it 15 ms. */
const METADATA = new MikroORM({
  dbName: 'none: it only discovers',
  entities: ENTITIES,
  forceUtcTimezone: true,
}).getMetadata();

/**
 * Opens the database as the given role. A database that can't be reached is not an error yet.
 * @throws SessionRefused if it can be reached, but the login could leave the role or is not a member of it,
 * or the sessions' time limits are not in force
 */
export async function openOrm(options: OrmOptions): Promise<Orm> {
  return openOn(createPool(options), options);
}

async function openOn(pool: Pool, { databaseUrl, role }: OrmOptions): Promise<Orm> {
  const dialect: Dialect = {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => pool,
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  };
  const driver = new Configuration<PostgreSqlDriver>({
    driver: PostgreSqlDriver,
    clientUrl: databaseUrl,
    entities: ENTITIES,
    driverOptions: dialect,
    forceUtcTimezone: true,
    // A mistyped name is an error, not a new database.
    ensureDatabase: false,
  }).getDriver();
  driver.setMetadata(METADATA);
  const orm: Orm = { em: driver.createEntityManager(), close: () => driver.close() };
  try {
    await query(orm.em.fork(), 'SELECT');
  } catch (error) {
    const refusal = explainRefusedSession(error, role);
    if (refusal === undefined) return orm;
    await orm.close();
    throw refusal;
  }
  return orm;
}

function createPool(options: OrmOptions): Pool {
  const {
    role,
    pooled = false,
    onOwnerLogin,
    onSharedLogin,
    limits = SERVICE_LIMITS,
    settings = {},
  } = options;
  const maxResponseMs = limits.statementMs && limits.statementMs + RESPONSE_MARGIN_MS;
  const startup = startupOptions(limits, role === undefined ? settings : { role, ...settings });
  const types = typeParsers();
  return new Pool({
    size: options.poolSize,
    shares: options.shares,
    create: () =>
      new Connection({
        connectionString: options.databaseUrl,
        // Poolers drop or refuse it.
        options: pooled ? undefined : startup,
        application_name: options.applicationName ?? 'card-issuing',
        types,
        prepares: !pooled,
        maxResponseMs,
        ...CLIENT_KEEPALIVE,
      }),
    check: async ({ client }) => {
      await checkLogin(client, { role, pooled, onOwnerLogin, onSharedLogin });
      await checkSession(client, limits);
    },
  });
}

/** Added to a statement's own limit. After that, PostgreSQL or the network to it counts as gone. */
const RESPONSE_MARGIN_MS = 3_000;

/** The types as MikroORM's own driver parses them: a date or a time stays text. */
function typeParsers(): pg.TypeOverrides {
  const types = new pg.TypeOverrides();
  // The types of `pg` say that it parses a number.
  const parseArray = types.getTypeParser(TEXT_ARRAY) as unknown as (text: string) => string[];
  const parsers = createPostgreSqlTypeParsers(parseArray);
  for (const [oid, parse] of Object.entries(parsers)) types.setTypeParser(Number(oid), parse);
  return types;
}

const TEXT_ARRAY = 1009;

export interface ServiceDatabase {
  orm: Orm;
  /** The current usage of its connections. */
  poolUsage: PoolUsage;
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
  options: Omit<OrmOptions, 'databaseUrl' | 'pooled' | 'onOwnerLogin' | 'onSharedLogin'> & {
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
  const ormOptions = { ...options, ...allowed, databaseUrl, pooled, onSharedLogin };
  const pool = createPool(ormOptions);
  const orm = await openOn(pool, ormOptions);
  // The start does not wait for it. If PostgreSQL is down, `attention list` still says it.
  void readLoggedValues(orm.em.fork()).then(
    (why) => {
      if (why !== null) logger.warn({ why }, "PostgreSQL's log can have cardholders' names in it");
    },
    () => {},
  );
  return {
    orm,
    poolUsage: pool.usage,
    direct: { databaseUrl: databaseDirectUrl ?? databaseUrl, role, ...allowed },
  };
}

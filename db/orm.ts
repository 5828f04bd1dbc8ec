import { MikroORM } from '@mikro-orm/postgresql';
import { ENTITIES } from './entities/entities.ts';
import { PreparedClient } from './prepared-client.ts';

export type Orm = MikroORM;

/** The role every process works as; the migrations create it and say what it may do. */
export const APP_ROLE = 'card_issuing_app';

export interface OrmOptions {
  databaseUrl: string;
  /** Most connections this process opens. */
  poolSize: number;
  /** What the connections are called in pg_stat_activity. */
  applicationName?: string;
}

/**
 * Opens the database as {@link APP_ROLE}, whoever the URL logs in as: that role can read the ledger and call its one
 * function, nothing else of it.
 */
export async function openOrm(options: OrmOptions): Promise<Orm> {
  return MikroORM.init({
    clientUrl: options.databaseUrl,
    entities: ENTITIES,
    pool: { min: 0, max: options.poolSize, idleTimeoutMillis: 30_000 },
    driverOptions: {
      Client: PreparedClient,
      options: `-c role=${APP_ROLE}`,
      application_name: options.applicationName ?? 'card-issuing',
      connectionTimeoutMillis: 5_000,
      keepAlive: true,
    },
    forceUtcTimezone: true,
    // A mistyped name is an error, not a new database.
    ensureDatabase: false,
  });
}

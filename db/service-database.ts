import type { Logger } from 'pino';
import { checkLoginAt, SERVICE_ROLE } from './login.ts';
import { type Orm, type OrmOptions, openOrm } from './orm.ts';

export interface ServiceDatabase {
  orm: Orm;
  /** PostgreSQL itself, for LISTEN. */
  direct: { databaseUrl: string; onOwnerLogin: ((why: string) => void) | undefined };
}

/** How the database is reached, as the configuration says it. */
export interface DatabaseConfig {
  databaseUrl: string;
  databaseDirectUrl: string | null;
  allowOwnerLogin: boolean;
}

/**
 * Opens the database for API and worker.
 * @throws LoginRefused where a login could leave the service's role, on either way, unless the configuration allows it.
 */
export async function openServiceDatabase(
  config: DatabaseConfig,
  logger: Logger,
  options: Omit<OrmOptions, 'databaseUrl' | 'role' | 'pooled' | 'onOwnerLogin'>,
): Promise<ServiceDatabase> {
  let warned = false;
  const onOwnerLogin = (why: string) => {
    if (!warned)
      logger.warn({ why }, 'ALLOW_OWNER_LOGIN is set: a bug in this process could change the ledger at will');
    warned = true;
  };
  const allowed = { onOwnerLogin: config.allowOwnerLogin ? onOwnerLogin : undefined };
  const { databaseUrl, databaseDirectUrl } = config;
  const pooled = databaseDirectUrl !== null;
  if (pooled) await checkLoginAt(databaseDirectUrl, { role: SERVICE_ROLE, pooled: false, ...allowed });
  const orm = await openOrm({ ...options, ...allowed, databaseUrl, role: SERVICE_ROLE, pooled });
  return { orm, direct: { databaseUrl: databaseDirectUrl ?? databaseUrl, ...allowed } };
}

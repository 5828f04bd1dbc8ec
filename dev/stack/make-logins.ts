import { OPERATOR_ROLE, SERVICE_ROLE } from '../../db/login.ts';
import { createLogin, urlFor } from '../postgres/create-login.ts';
import type { Secrets } from './secrets.ts';
import type { Settings } from './settings.ts';

/**
 * Makes the logins of service and operator in a migrated database, as whoever runs one in production does.
 * @returns their URLs; the owner's for both on a server of the user's own where ALLOW_OWNER_LOGIN says so
 */
export async function makeLogins(
  ownerUrl: string,
  { service, operator }: Secrets['logins'],
  settings: Pick<Settings, 'DATABASE_URL' | 'ALLOW_OWNER_LOGIN'>,
): Promise<{ databaseUrl: string; operatorDatabaseUrl: string }> {
  if (settings.DATABASE_URL !== undefined && settings.ALLOW_OWNER_LOGIN === 'true') {
    return { databaseUrl: ownerUrl, operatorDatabaseUrl: ownerUrl };
  }
  try {
    await createLogin(ownerUrl, { ...service, role: SERVICE_ROLE });
    await createLogin(ownerUrl, { ...operator, role: OPERATOR_ROLE });
  } catch (error) {
    throw new Error(
      "the logins of service and operator can't be made: give DATABASE_URL a user that may make roles (CREATEROLE), " +
        'or set ALLOW_OWNER_LOGIN=true to have everything log in as this one',
      { cause: error },
    );
  }
  return { databaseUrl: urlFor(ownerUrl, service), operatorDatabaseUrl: urlFor(ownerUrl, operator) };
}

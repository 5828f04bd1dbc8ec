import { migrate } from '../../db/migrate.ts';

/** Brings the service's database up to date. */
export async function migrateDatabase(databaseUrl: string, report: (line: string) => void): Promise<void> {
  let applied: string[];
  try {
    applied = await migrate(databaseUrl);
  } catch (error) {
    const { host, pathname } = new URL(databaseUrl);
    throw new Error(
      `database ${pathname.slice(1)} at ${host} can't be brought up to date; see that it answers, or correct DATABASE_URL`,
      { cause: error },
    );
  }
  if (applied.length > 0) report(`applied ${applied.length} migrations`);
}

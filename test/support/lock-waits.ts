import { asOwner } from './postgres.ts';

/** How many sessions of a database wait for a lock. A connection of its own asks, as a transaction goes on seeing what it saw first. */
export async function lockWaits(databaseUrl: string): Promise<number> {
  const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  return (await asOwner(databaseUrl, waiting)).length;
}

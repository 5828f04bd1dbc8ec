import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { migrate } from '../../db/migrate.ts';
import { expectedMigrations } from '../../db/migration-names.ts';
import { testPostgres } from '../support/postgres.ts';
import { until } from '../workflows/support/until.ts';

describe('migrate', () => {
  it('gives way where what it changes is locked, and goes on when it is free', async () => {
    const postgres = await testPostgres();
    const database = `locked_${randomUUID().slice(0, 8)}`;
    await postgres.createDatabase(database);
    const databaseUrl = postgres.urlOf(database);
    const holder = new pg.Client(databaseUrl);
    // Another one, since a transaction sees the sessions as they were when it first looked.
    const watcher = new pg.Client(databaseUrl);
    await Promise.all([holder.connect(), watcher.connect()]);
    const isWaiting = async () => {
      const { rowCount } = await watcher.query(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      return (rowCount ?? 0) > 0;
    };
    try {
      await holder.query('BEGIN');
      // Whoever makes a schema of that name has to wait until it is known whether this one stays.
      await holder.query('CREATE SCHEMA ledger');
      const migrated = migrate(databaseUrl);
      await until('it waits', isWaiting);
      await until('it waits no longer', async () => !(await isWaiting()));
      await holder.query('ROLLBACK');
      assert.deepEqual(await migrated, await expectedMigrations());
    } finally {
      await Promise.all([holder.end(), watcher.end()]);
    }
  });
});

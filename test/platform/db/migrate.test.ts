import assert from 'node:assert/strict';
import { expectedMigrations, functionFiles, migrate } from '../../../platform/db/migrate.ts';
import { column } from '../../support/column.ts';
import { lockWaits } from '../../support/lock-waits.ts';
import {
  asOwner,
  connectTo,
  createEmptyDatabase,
  createTestDatabase,
  ownerUrlOf,
} from '../../support/postgres.ts';
import { until } from '../../support/until.ts';

describe('migrate', () => {
  it('gives way if a table that it changes is locked, and goes on when it is free', async () => {
    const databaseUrl = await createEmptyDatabase();
    await using holder = await connectTo(databaseUrl);
    await holder.query('BEGIN');
    // Whoever makes a schema of that name has to wait until it is known whether this one stays.
    await holder.query('CREATE SCHEMA ledger');
    const migrated = migrate(databaseUrl);
    await until('it waits', async () => (await lockWaits(databaseUrl)) > 0);
    await until('it waits no longer', async () => (await lockWaits(databaseUrl)) === 0);
    await holder.query('ROLLBACK');
    const { migrations, functions } = await migrated;
    assert.deepEqual(migrations, await expectedMigrations());
    assert.deepEqual(functions, column(await functionFiles(), 'name'));
  });

  it('applies a function whose text is another one, and leaves the others', async () => {
    const databaseUrl = ownerUrlOf(await createTestDatabase());
    await asOwner(databaseUrl, [
      `INSERT INTO schema_function (name, sha256, applied_at) VALUES ('account_now', sha256('another'), clock_timestamp())`,
      `CREATE OR REPLACE FUNCTION account_now(account text, of_mode text) RETURNS timestamptz LANGUAGE sql STABLE RETURN now()`,
    ]);
    assert.deepEqual(await migrate(databaseUrl), { migrations: [], functions: ['account_now'] });
    const [row] = await asOwner<{ body: string }>(
      databaseUrl,
      `SELECT pg_get_function_sqlbody('account_now(text, text)'::regprocedure) AS body`,
    );
    assert.match(row?.body ?? '', /account_time/);
    assert.deepEqual(await migrate(databaseUrl), { migrations: [], functions: [] });
  });

  it('names the function that can not be applied, and applies none', async () => {
    const databaseUrl = ownerUrlOf(await createTestDatabase());
    await asOwner(databaseUrl, [
      'DROP FUNCTION lock_test_clock_alone',
      `CREATE FUNCTION lock_test_clock_alone(account text) RETURNS integer LANGUAGE sql RETURN 1`,
      `UPDATE schema_function SET sha256 = sha256('another') WHERE name IN ('id_time', 'lock_test_clock_alone')`,
    ]);
    await assert.rejects(
      migrate(databaseUrl),
      /functions\/lock_test_clock_alone\.sql: SQLSTATE 42P13; no function was applied/,
    );
    const applied = await asOwner(
      databaseUrl,
      `SELECT name FROM schema_function WHERE sha256 = sha256('another') ORDER BY name`,
    );
    assert.deepEqual(applied, [{ name: 'id_time' }, { name: 'lock_test_clock_alone' }]);
  });

  it('applies one file for each function, which begins with what the function is for', async () => {
    const files = await functionFiles();
    const functions = await asOwner<{ name: string }>(
      await createTestDatabase(),
      `SELECT CASE n.nspname WHEN 'public' THEN '' ELSE n.nspname || '.' END || p.proname AS name
       FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
       WHERE n.nspname IN ('public', 'ledger', 'simulated_network')`,
    );
    assert.deepEqual(column(files, 'name').sort(), column(functions, 'name').sort());
    for (const { name, text } of files)
      assert.match(text, /^(-- .+\n)+CREATE OR REPLACE FUNCTION \S+\(/, name);
  });

  it('refuses a database that was migrated with other files, says what to do, and changes nothing', async () => {
    const databaseUrl = ownerUrlOf(await createTestDatabase());
    await asOwner(
      databaseUrl,
      "UPDATE schema_migration SET name = '0001_other' WHERE name = '0001_accounts'",
    );
    await asOwner(databaseUrl, "DELETE FROM schema_migration WHERE name > '0005'");
    await assert.rejects(
      migrate(databaseUrl),
      /The database has the migration 0001_other where this version has 0001_accounts: .*npm run reset/,
    );
    const recorded = await asOwner(databaseUrl, 'SELECT count(*)::int AS count FROM schema_migration');
    assert.deepEqual(recorded, [{ count: 4 }]);
  });
});

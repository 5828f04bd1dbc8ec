import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { runner } from 'node-pg-migrate';
import pg from 'pg';
import { checkLedger } from '../../../ledger/check-ledger.ts';
import { newId } from '../../../platform/crypto/new-id.ts';
import { expectedMigrations, MIGRATIONS_FOLDER, migrate } from '../../../platform/db/migrate.ts';
import {
  asOwner,
  createEmptyDatabase,
  createTestDatabase,
  openOperatorOrm,
  ownerUrlOf,
} from '../../support/postgres.ts';
import { until } from '../../support/until.ts';

/** The first release begins with the migrations up to this one. */
const LAST_OF_BASELINE = '0010_operations';

/** How deliveries of a first release can stand, each with the state of its workflow. */
const DELIVERIES = [
  ['delivered', 'none'],
  ['given_up', 'told'],
  ['parked', 'none'],
  ['pending', 'none'],
  ['retrying', 'told'],
] as const;

describe('migrate', () => {
  it('gives way if a table that it changes is locked, and goes on when it is free', async () => {
    const databaseUrl = await createEmptyDatabase();
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

  it('applies the migrations after the baseline to a database in use', async () => {
    const databaseUrl = await createEmptyDatabase();
    const all = await expectedMigrations();
    const baseline = all.filter((name) => name <= LAST_OF_BASELINE);
    await runner({
      databaseUrl,
      dir: fileURLToPath(MIGRATIONS_FOLDER),
      direction: 'up',
      migrationsTable: 'schema_migration',
      log: () => {},
      count: baseline.length,
    });
    const partner = `prt_${randomUUID()}`;
    const client = new pg.Client(databaseUrl);
    await client.connect();
    const credit = async (id: string) => {
      const transfer = {
        operation: 1,
        operation_id: `faucet/${id}`,
        partner_id: partner,
        mode: 'test',
        id,
        code: 'fund_faucet',
        phase: 'single',
        debit_id: `faucet/test/${partner}`,
        credit_id: `prepaid/test/${partner}`,
        amount: 100,
      };
      const { rows } = await client.query('SELECT outcome FROM ledger.apply_operations($1)', [
        JSON.stringify([transfer]),
      ]);
      return rows;
    };
    try {
      await client.query(`INSERT INTO partner (id, name) VALUES ($1, 'P')`, [partner]);
      await client.query(
        `INSERT INTO event (id, partner_id, mode, type, body, created_at) VALUES ($1, $2, 'test', 'ping', '{}', now())`,
        [newId('evt'), partner],
      );
      await client.query(
        `INSERT INTO webhook_endpoint (partner_id, mode, url, secret) VALUES ($1, 'live', 'https://hooks.example.com/', '')`,
        [partner],
      );
      for (const [status, workflow] of DELIVERIES) {
        const id = newId('evt');
        await client.query(
          `INSERT INTO event (id, partner_id, mode, type, body, created_at) VALUES ($1, $2, 'live', 'ping', '{}', now())`,
          [id, partner],
        );
        await client.query('UPDATE delivery SET status = $2, workflow = $3 WHERE event_id = $1', [
          id,
          status,
          workflow,
        ]);
        await client.query(
          `INSERT INTO delivery_attempt (event_id, number, started_at, duration_ms, delivered) VALUES ($1, 1, now(), 1, true)`,
          [id],
        );
      }
      const [before, after] = [randomUUID(), randomUUID()];
      await credit(before);

      assert.deepEqual(await migrate(databaseUrl), all.slice(baseline.length));
      assert.deepEqual(await credit(before), [{ outcome: 'replayed' }]);
      assert.deepEqual(await credit(after), [{ outcome: 'applied' }]);
      const none = await client.query("SELECT status, endpoint_id FROM delivery WHERE mode = 'test'");
      assert.deepEqual(none.rows, [{ status: 'no_endpoint', endpoint_id: '' }]);
      // Each delivery and attempt has the endpoint that there was, and keeps its workflow.
      const kept = await client.query(
        `SELECT d.status, d.workflow, d.workflow_of_event FROM delivery d
         JOIN webhook_endpoint w ON w.partner_id = d.partner_id AND w.mode = d.mode AND w.id = d.endpoint_id
         JOIN delivery_attempt a ON a.event_id = d.event_id AND a.endpoint_id = d.endpoint_id ORDER BY d.status`,
      );
      assert.deepEqual(
        kept.rows,
        DELIVERIES.map(([status, workflow]) => ({
          status,
          workflow,
          workflow_of_event: workflow !== 'none',
        })),
      );
      const orm = await openOperatorOrm(databaseUrl);
      try {
        assert.deepEqual(await checkLedger(orm.em.fork()), []);
      } finally {
        await orm.close();
      }
    } finally {
      await client.end();
    }
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

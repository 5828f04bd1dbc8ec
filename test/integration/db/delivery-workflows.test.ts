import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { runner } from 'node-pg-migrate';
import pg from 'pg';
import { expectedMigrations, MIGRATIONS_FOLDER } from '../../../db/migrate.ts';
import { testPostgres } from '../../support/postgres.ts';

const NAME = '0010_delivery_workflows';

describe('the migration 0010_delivery_workflows', () => {
  it("takes over the previous release's workflows, and how far their schedules are", async () => {
    const postgres = await testPostgres();
    const database = `deliveries_${randomUUID().slice(0, 8)}`;
    await postgres.createDatabase(database);
    const client = new pg.Client(postgres.urlOf(database));
    await client.connect();
    const migrate = (count: number) =>
      runner({
        databaseUrl: postgres.urlOf(database),
        dir: fileURLToPath(MIGRATIONS_FOLDER),
        direction: 'up',
        migrationsTable: 'schema_migration',
        count,
        log: () => {},
      });
    try {
      await migrate((await expectedMigrations()).indexOf(NAME));
      await client.query(`INSERT INTO partner (id, name) VALUES ('prt_1', 'Before')`);
      for (const [id, status, attempts] of [
        ['evt_a', 'pending', 0],
        ['evt_b', 'delivered', 1],
        ['evt_c', 'retrying', 2],
        ['evt_d', 'given_up', 5],
        ['evt_e', 'retrying', 6],
      ]) {
        await client.query(
          `INSERT INTO event (id, partner_id, mode, type, body, created_at)
           VALUES ($1, 'prt_1', 'test', 'ping', '{}', now())`,
          [id],
        );
        await client.query('UPDATE delivery SET status = $2, attempt_count = $3 WHERE event_id = $1', [
          id,
          status,
          attempts,
        ]);
      }
      await migrate(1);
      const { rows } = await client.query(
        'SELECT event_id, workflow, schedule_attempts FROM delivery ORDER BY event_id',
      );
      assert.deepEqual(
        rows.map((row) => Object.values(row)),
        [
          ['evt_a', 'none', 0],
          ['evt_b', 'none', 0],
          ['evt_c', 'told', 2],
          ['evt_d', 'told', 5],
          // Requeued when it had been given up, and refused once since then.
          ['evt_e', 'told', 1],
        ],
      );
    } finally {
      await client.end();
    }
  });
});

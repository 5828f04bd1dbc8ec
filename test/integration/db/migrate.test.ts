import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { runner } from 'node-pg-migrate';
import pg from 'pg';
import { lowestId, newId } from '../../../crypto/new-id.ts';
import { expectedMigrations, MIGRATIONS_FOLDER, migrate } from '../../../db/migrate.ts';
import { checkLedger } from '../../../ledger/check-ledger.ts';
import { openOperatorOrm, testPostgres } from '../../support/postgres.ts';
import { until } from '../../support/until.ts';

describe('migrate', () => {
  it('gives way if a table that it changes is locked, and goes on when it is free', async () => {
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

  it('takes over what the release with workflows in test mode left', async () => {
    const postgres = await testPostgres();
    const database = `left_${randomUUID().slice(0, 8)}`;
    await postgres.createDatabase(database);
    const databaseUrl = postgres.urlOf(database);
    const dir = fileURLToPath(MIGRATIONS_FOLDER);
    const common = { direction: 'up', migrationsTable: 'schema_migration', log: () => {} } as const;
    await runner({ databaseUrl, dir, count: 7, ...common });
    const client = new pg.Client(databaseUrl);
    await client.connect();
    try {
      await client.query(`
        INSERT INTO partner (id, name) VALUES ('prt_1', 'P');
        INSERT INTO product (code, bin, network) VALUES ('USD', '424242', 'visa');
        INSERT INTO card (id, partner_id, mode, status, external_ref, product_code, network, funding_cents, fees, created_at)
          SELECT 'card_' || status, 'prt_1', 'live', status, status, 'USD', 'visa', 1, '[]', '2026-01-01T23:59:59Z'
          FROM unnest('{funding_pending,active}'::text[]) status;
        INSERT INTO idempotency_claim (id, partner_id, mode, key, operation, fingerprint, request_id, lease_expires_at,
            response_status, response_body)
          SELECT concat_ws(' ', mode, answered), 'prt_1', mode, answered, 'create_card', '', 'req', now(),
            CASE answered WHEN 'answered' THEN 201 END, CASE answered WHEN 'answered' THEN ''::bytea END
          FROM unnest('{test,live}'::text[]) mode, unnest('{answered,not}'::text[]) answered;
        INSERT INTO idempotency_claim (id, partner_id, mode, operation, fingerprint, request_id, lease_expires_at,
            response_status, response_body)
          VALUES ('claim_funding_pending', 'prt_1', 'live', 'create_card', '', 'req', now(), 202, ''),
            ('claim_to_come', 'prt_1', 'live', 'top_up_card', '', 'req', now(), NULL, NULL)`);
      await migrate(databaseUrl);
      const claims = await client.query('SELECT id FROM idempotency_claim ORDER BY id');
      assert.deepEqual(
        claims.rows.map(({ id }) => id),
        ['claim_funding_pending', 'claim_to_come', 'live answered', 'live not', 'test answered'],
      );
      const cards = await client.query('SELECT id, counted_on::text AS day, claim_id FROM card ORDER BY id');
      assert.deepEqual(cards.rows, [
        { id: 'card_active', day: null, claim_id: null },
        { id: 'card_funding_pending', day: '2026-01-01', claim_id: 'claim_funding_pending' },
      ]);
      const made = await client.query(
        "SELECT id, resource_id FROM idempotency_claim WHERE id LIKE 'claim%' ORDER BY id",
      );
      assert.deepEqual(made.rows, [
        { id: 'claim_funding_pending', resource_id: 'card_funding_pending' },
        { id: 'claim_to_come', resource_id: 'topup_to_come' },
      ]);
    } finally {
      await client.end();
    }
  });

  it('moves events, attempts, the audit log and the ledger into partitions', async () => {
    const postgres = await testPostgres();
    const database = `carried_${randomUUID().slice(0, 8)}`;
    await postgres.createDatabase(database);
    const databaseUrl = postgres.urlOf(database);
    const dir = fileURLToPath(MIGRATIONS_FOLDER);
    const common = { direction: 'up', migrationsTable: 'schema_migration', log: () => {} } as const;
    const before = (await expectedMigrations()).indexOf('0016_partitioned_events');
    await runner({ databaseUrl, dir, count: before, ...common });
    const [soon, muchLater] = [newId('evt'), lowestId('evt', new Date('2200-01-01'))];
    const partner = `prt_${randomUUID()}`;
    const client = new pg.Client(databaseUrl);
    await client.connect();
    try {
      await client.query(`INSERT INTO partner (id, name) VALUES ($1, 'P')`, [partner]);
      await client.query(
        `INSERT INTO event (id, partner_id, mode, type, body, created_at)
         SELECT id, $2, 'test', 'ping', '{}', now() FROM unnest($1::text[]) id`,
        [[soon, muchLater], partner],
      );
      await client.query(
        `INSERT INTO delivery_attempt (event_id, number, started_at, duration_ms, delivered)
         SELECT event_id, 1, now(), 1, true FROM delivery`,
      );
      await client.query(
        `INSERT INTO audit_entry (id, actor, action, subject, detail) VALUES ($1, 'a', 'b', 'c', '{}')`,
        [newId('aud')],
      );
      const transfer = (id: string) => ({
        ...{
          operation: 1,
          operation_id: `faucet/${id}`,
          partner_id: partner,
          mode: 'test',
          id,
          code: 'fund_faucet',
        },
        ...{
          phase: 'single',
          debit_id: `faucet/test/${partner}`,
          credit_id: `prepaid/test/${partner}`,
          amount: 100,
        },
      });
      const apply = (id: string) =>
        client.query('SELECT outcome FROM ledger.apply_operations($1)', [JSON.stringify([transfer(id)])]);
      const [old, later] = [randomUUID(), randomUUID()];
      await apply(old);

      await migrate(databaseUrl);
      assert.deepEqual((await apply(old)).rows, [{ outcome: 'replayed' }]);
      assert.deepEqual((await apply(later)).rows, [{ outcome: 'applied' }]);
      const where = async (table: string, key: string) => {
        const { rows } = await client.query(
          `SELECT tableoid::regclass::text AS partition, count(*)::int FROM ${table} GROUP BY 1 ORDER BY min(${key}::text)`,
        );
        return rows.map((row) => Object.values(row));
      };
      assert.deepEqual(await where('event', 'id'), [
        ['event_first', 1],
        ['event_default', 1],
      ]);
      assert.deepEqual(await where('delivery_attempt', 'event_id'), [
        ['delivery_attempt_first', 1],
        ['delivery_attempt_default', 1],
      ]);
      assert.deepEqual(await where('audit_entry', 'id'), [['audit_entry_first', 1]]);
      assert.deepEqual(await where('ledger.entry', 'transfer_id'), [['ledger.entry_first', 4]]);
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
});

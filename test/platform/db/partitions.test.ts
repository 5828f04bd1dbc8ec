import assert from 'node:assert/strict';
import type pg from 'pg';
import type { DeliveryStatus } from '../../../domain/event.ts';
import { lowestId, newId } from '../../../platform/crypto/new-id.ts';
import { readWithoutPartition } from '../../../platform/db/attention.ts';
import { migrate } from '../../../platform/db/migrate.ts';
import { type Orm, openOrm } from '../../../platform/db/orm.ts';
import { dropOldEvents, makePartitions } from '../../../platform/db/partitions.ts';
import { query } from '../../../platform/db/sql.ts';
import { pruneEvents } from '../../../webhooks/prune-events.ts';
import { openCommands, type TestCommands } from '../../support/commands/open-commands.ts';
import { lockWaits } from '../../support/lock-waits.ts';
import { partitionsOf, splitFirst } from '../../support/partitions.ts';
import { createEmptyDatabase, serviceUrlOf } from '../../support/postgres.ts';
import { until } from '../../support/until.ts';

const DAY_MS = 24 * 3_600_000;
const TABLES = ['event', 'delivery_attempt', 'audit_entry', 'ledger.entry'];

describe('the time partitions', () => {
  let commands: TestCommands;
  let orm: Orm;
  let owner: pg.Client;
  const partnerId = 'prt_1';

  beforeEach(async () => {
    commands = await openCommands();
    owner = commands.owner;
    orm = commands.context.orm;
    await owner.query(`INSERT INTO partner (id, name) VALUES ($1, 'Partitioned')`, [partnerId]);
    // The template was migrated when the run began, which may have been yesterday.
    await makePartitions(orm);
  });
  afterEach(() => commands.close());

  const at = (ageDays: number) => new Date(Date.now() - ageDays * DAY_MS);
  const boundAt = (ageDays: number) => lowestId('evt', at(ageDays)).slice(0, -16);

  /** As the service does, with one attempt. @returns its id */
  async function write(id: string, status: DeliveryStatus = 'delivered'): Promise<string> {
    const em = orm.em.fork();
    await query(
      em,
      `INSERT INTO event (id, partner_id, mode, type, body, created_at) VALUES ($1, $2, 'test', 'ping', '{}', now())`,
      [id, partnerId],
    );
    await query(
      em,
      `INSERT INTO delivery_attempt (event_id, endpoint_id, number, started_at, duration_ms, delivered) VALUES ($1, '', 1, now(), 1, true)`,
      [id],
    );
    await query(em, 'UPDATE delivery SET status = $2 WHERE event_id = $1', [id, status]);
    return id;
  }
  const writeAged = (ageDays: number, status?: DeliveryStatus) =>
    write(lowestId('evt', at(ageDays)).slice(0, 14) + newId('evt').slice(14), status);

  async function idsIn(table: string, column = 'id'): Promise<string[]> {
    const { rows } = await owner.query<{ id: string }>(`SELECT ${column} AS id FROM ${table} ORDER BY 1`);
    return rows.map(({ id }) => id);
  }

  it('encode times as platform/crypto/new-id.ts does', async () => {
    for (const moment of [new Date(0), new Date(), new Date('2026-11-30T00:00:00Z'), new Date(2 ** 47)]) {
      const { rows } = await owner.query('SELECT id_time($1) AS time', [moment.toISOString()]);
      assert.equal(rows[0].time, lowestId('evt', moment).slice(4, 14));
    }
  });

  it('exist for each table without a gap up to at least two weeks from now', async () => {
    const migrated = await createEmptyDatabase();
    await migrate(migrated);
    const ofMigrated = await openOrm({ databaseUrl: serviceUrlOf(migrated), poolSize: 1 });
    assert.deepEqual(await makePartitions(ofMigrated), []);
    await ofMigrated.close();
    for (const table of TABLES) {
      const { rows } = await owner.query<{ first: string | null; last: string }>(
        `SELECT partition_bound('FROM', c.oid) AS first, partition_bound('TO', c.oid) AS last
         FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
         WHERE i.inhparent = $1::regclass AND partition_bound('TO', c.oid) IS NOT NULL ORDER BY 2`,
        [table],
      );
      for (const [i, { first }] of rows.entries()) assert.equal(first, i === 0 ? null : rows[i - 1]?.last);
      const ahead = at(-14);
      const wanted =
        table === 'ledger.entry' ? ahead.toISOString().slice(0, 10) : lowestId('evt', ahead).slice(4);
      const { last } = rows.at(-1) as { last: string };
      assert.ok(last.replace(/^..._/, '') > wanted, `${table}: ${last}`);
    }
  });

  it('are made once each by several workers', async () => {
    const existing = async () => {
      const found: string[][] = [];
      for (const table of TABLES) found.push(await partitionsOf(owner, table));
      return found;
    };
    const before = await existing();
    const newest = before.map((partitions, i) => ({
      table: TABLES[i] ?? '',
      partition: partitions.at(-1) ?? '',
    }));
    for (const { table, partition } of newest) {
      await owner.query(`DROP TABLE ${table.startsWith('ledger') ? 'ledger.' : ''}${partition}`);
    }
    const made = (await Promise.all([1, 2, 3, 4].map(() => makePartitions(orm)))).flat();
    made.push(...(await makePartitions(orm)));
    assert.deepEqual(made.sort(), newest.map(({ partition }) => partition).sort());
    assert.deepEqual(await existing(), before);
  });

  it('protect their entries from changes, through the table or the partition', async () => {
    const [partition = ''] = (await partitionsOf(owner, 'ledger.entry')).slice(-1);
    for (const name of ['entry', partition, 'entry_default', 'entry_first']) {
      await assert.rejects(owner.query(`DELETE FROM ledger.${name}`), /append-only/);
      await assert.rejects(owner.query(`TRUNCATE ledger.${name}`), /append-only/);
    }
  });

  it('leave rows without a partition in the default one, whose period then stays there', async () => {
    const [, second = ''] = (await partitionsOf(owner, 'event')).slice(-2);
    const { rows } = await owner.query<{ first: string }>(
      `SELECT partition_bound('FROM', $1::regclass) AS first`,
      [second],
    );
    // As if nobody had made it in time.
    await owner.query(`DROP TABLE ${second}`);
    const late = await write(`${rows[0]?.first}${'0'.repeat(16)}`);
    assert.deepEqual(await idsIn('event_default'), [late]);
    assert.deepEqual(await makePartitions(orm), []);
    assert.deepEqual(await idsIn('event'), [late]);
    await owner.query('DELETE FROM event_default');
    assert.deepEqual(await makePartitions(orm), [second]);
  });

  it('are missing if no worker ran for weeks: the default ones take all, an operator is told, and the next ones are made', async () => {
    const told = async () => (await readWithoutPartition(orm)).map(({ id }) => id).sort();
    assert.deepEqual(await told(), []);
    const weeks = {
      event: await partitionsOf(owner, 'event'),
      delivery_attempt: await partitionsOf(owner, 'delivery_attempt'),
    };
    // As if the last of them had ended 20 days ago.
    for (const table of ['event', 'delivery_attempt'] as const) {
      await splitFirst(owner, table, [boundAt(20)]);
      for (const gone of [`${table}_first1`, ...weeks[table].slice(1)])
        await owner.query(`DROP TABLE ${gone}`);
    }
    const late = await writeAged(0);
    assert.deepEqual(await idsIn('event_default'), [late]);
    assert.deepEqual(await idsIn('event'), [late]);
    assert.deepEqual(await told(), ['delivery_attempt', 'event']);

    const made = await makePartitions(orm);
    assert.deepEqual(made.sort(), [...weeks.event.slice(1), ...weeks.delivery_attempt.slice(1)].sort());
    const next = await write(`${lowestId('evt', at(-8)).slice(0, 14)}${newId('evt').slice(14)}`);
    assert.deepEqual(await idsIn('event_default'), [late]);
    assert.deepEqual(await idsIn('event'), [late, next]);
    // What is there has kept its place, and goes by rows.
    await owner.query(`UPDATE delivery_attempt_default SET started_at = now() - interval '15 days'`);
    await owner.query(`UPDATE event_default SET created_at = now() - interval '15 days'`);
    assert.deepEqual(await told(), []);
  });

  it('are missing of the ledger only as long as its year has none', async () => {
    const [first = ''] = await partitionsOf(owner, 'ledger.entry');
    await owner.query(`ALTER TABLE ledger.entry DETACH PARTITION ledger.${first}`);
    assert.deepEqual(await readWithoutPartition(orm), []);
    await commands.createFundedPartner(100);
    const [missing, ...others] = await readWithoutPartition(orm);
    assert.deepEqual([missing?.kind, missing?.id, others], ['default_partition', 'ledger.entry', []]);
  });

  it('are dropped for events when the whole week is older than 30 days and none of it is being sent', async () => {
    const bounds = [boundAt(45), boundAt(38), boundAt(31)];
    for (const table of ['event', 'delivery_attempt']) await splitFirst(owner, table, bounds);
    await writeAged(50);
    const sending = await writeAged(40, 'retrying');
    await writeAged(39, 'given_up');
    await writeAged(33, 'no_endpoint');
    await writeAged(30.5, 'parked');
    const young = await writeAged(29);

    assert.deepEqual(await pruneEvents(orm), ['first0', 'first2']);
    assert.deepEqual(await idsIn('delivery', 'event_id'), [sending, young]);
    assert.equal((await idsIn('event')).length, 4);
    assert.equal((await idsIn('delivery_attempt', 'event_id')).length, 4);
    assert.deepEqual((await partitionsOf(owner, 'event')).slice(0, 2), ['event_first1', 'event_first3']);

    await owner.query(`UPDATE delivery SET status = 'given_up' WHERE event_id = $1`, [sending]);
    assert.deepEqual(await pruneEvents(orm), ['first1']);
    assert.deepEqual(await idsIn('delivery', 'event_id'), [young]);

    // Older than every partition: by rows.
    await writeAged(60);
    const [kept] = [await writeAged(60, 'pending')];
    assert.equal((await idsIn('event_default')).length, 2);
    assert.deepEqual(await pruneEvents(orm), []);
    assert.deepEqual(await idsIn('event_default'), [kept]);
    assert.deepEqual(await idsIn('delivery_attempt_default', 'event_id'), [kept]);
  });

  it('delay nobody while one waits to be dropped, and are dropped as soon as possible', async () => {
    for (const table of ['event', 'delivery_attempt']) await splitFirst(owner, table, [boundAt(31)]);
    await owner.query('BEGIN');
    await owner.query('SELECT FROM event LIMIT 1');
    const dropped = dropOldEvents(orm);
    await until('it waits for the reader', async () => (await lockWaits(commands.databaseUrl)) > 0);
    // With the reader still there.
    await writeAged(0);
    assert.equal((await partitionsOf(owner, 'event'))[0], 'event_first0');
    await owner.query('COMMIT');
    assert.deepEqual(await dropped, ['first0']);
  });
});

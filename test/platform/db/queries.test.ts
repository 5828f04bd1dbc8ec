import assert from 'node:assert/strict';
import type { EntityManager } from '@mikro-orm/postgresql';
import { sql } from 'kysely';
import { newId } from '../../../platform/crypto/new-id.ts';
import type { Row } from '../../../platform/db/entities.ts';
import { newestRows } from '../../../platform/db/newest.ts';
import type { Orm } from '../../../platform/db/orm.ts';
import {
  autocommitStatement,
  columnList,
  query,
  readStatement,
  writeStatement,
} from '../../../platform/db/sql.ts';
import { transaction } from '../../../platform/db/transaction.ts';
import { connectTo, createTestDatabase, openOwnerOrm, ownerUrlOf } from '../../support/postgres.ts';

describe('through platform/db/sql.ts,', () => {
  let orm: Orm;
  let databaseUrl: string;
  before(async () => {
    databaseUrl = await createTestDatabase();
    orm = await openOwnerOrm(databaseUrl);
  });
  after(() => orm.close());

  describe('a query', () => {
    it('sends its values beside the statement, never in its text', async () => {
      const marked = 'SELECT $1::text AS value, pg_advisory_xact_lock(1)';
      await using owner = await connectTo(ownerUrlOf(databaseUrl));
      await owner.query('SELECT pg_advisory_lock(1)');
      const asked = query<{ value: string }>(orm.em.fork(), marked, ["it's ada@example.com"]);
      // A session's wait is read after its statement, which may still be the one before.
      const waiting = `SELECT query FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'
        AND query LIKE '%pg_advisory_xact_lock%'`;
      let seen: { query: string }[] = [];
      while (seen.length === 0) seen = (await owner.query<{ query: string }>(waiting)).rows;
      assert.deepEqual(seen, [{ query: marked }]);
      await owner.query('SELECT pg_advisory_unlock(1)');
      assert.equal((await asked)[0]?.value, "it's ada@example.com");
    });

    it('in a transaction with a deadlock runs again, and both transactions take effect', async () => {
      const ids = [newId('prt'), newId('prt')];
      for (const id of ids)
        await query(orm.em.fork(), `INSERT INTO partner (id, name) VALUES ($1, '')`, [id]);
      let runs = 0;
      const bothHoldOne = Promise.withResolvers<void>();
      const append = (letter: string, [first, second]: string[]) =>
        transaction(orm, async (tx) => {
          const change = 'UPDATE partner SET name = name || $2 WHERE id = $1';
          await query(tx, change, [first, letter]);
          runs += 1;
          if (runs === 2) bothHoldOne.resolve();
          await bothHoldOne.promise;
          await query(tx, change, [second, letter]);
        });
      await Promise.all([append('a', ids), append('b', ids.toReversed())]);
      assert.ok(runs >= 3, 'neither of them ran again');
      const rows = await query<{ name: string }>(
        orm.em.fork(),
        'SELECT name FROM partner WHERE id = ANY($1)',
        [ids],
      );
      for (const { name } of rows) assert.equal([...name].sort().join(''), 'ab');
    });
  });

  describe('statements', () => {
    it('are built once, and bind their constants and the values that they run with', async () => {
      let built = 0;
      const insert = writeStatement((db, { id, name }: { id: string; name: string }) => {
        built += 1;
        return db.insertInto('partner').values({ id, name }).returning(['id', 'secure_details_enabled']);
      });
      const find = readStatement((db, { ids }: { ids: string[] }) =>
        db
          .selectFrom('partner')
          .select(['id', 'name', 'fee_plan'])
          .where('id', '=', sql<string>`any(${ids})`)
          .where('name', '<>', 'b')
          .orderBy('id'),
      );
      const ids = [newId('prt'), newId('prt'), newId('prt')].sort();
      const rows = await transaction(orm, async (tx) => {
        const inserted = [];
        for (const [index, id] of ids.entries()) {
          inserted.push(...(await insert(tx, { id, name: 'abc'.charAt(index) })));
        }
        return inserted;
      });
      assert.deepEqual(
        rows,
        ids.map((id) => ({ id, secure_details_enabled: false })),
      );
      assert.equal(built, 1);
      assert.deepEqual(await find(orm.em.fork(), { ids }), [
        { id: ids[0], name: 'a', fee_plan: null },
        { id: ids[2], name: 'c', fee_plan: null },
      ]);
    });

    it('return rows as the driver does and as their types say', async () => {
      const partnerId = newId('prt');
      const row = await transaction(orm, async (tx) => {
        await query(tx, `INSERT INTO partner (id, name) VALUES ($1, 'x')`, [partnerId]);
        const [usage] = await writeStatement((db, values: { partnerId: string }) =>
          db
            .insertInto('account_usage')
            .values({ partner_id: values.partnerId, mode: 'test', loaded_cents: MOST })
            .returning(['loaded_cents', 'loaded_on', 'open_cards']),
        )(tx, { partnerId });
        return usage;
      });
      const given: { loaded_cents: string; loaded_on: string; open_cards: number } | undefined = row;
      assert.deepEqual(given, { loaded_cents: MOST, loaded_on: '-infinity', open_cards: 0 });
    });

    it('take each value unchanged and by its name', () => {
      const insert = (build: (values: { id: string; name: string }) => { id: string; name: string }) =>
        writeStatement((db, values: { id: string; name: string }) =>
          db.insertInto('partner').values(build(values)),
        );
      assert.throws(
        () => insert(({ id, name }) => ({ id, name: `${name}!` })),
        /"name" is not known while the statement is built/,
      );
      assert.throws(() => insert((values) => ({ ...values })), /has to name each value/);
    });
  });

  describe('statements in the `sql` template', () => {
    it('bind their values by name, wherever each appears', async () => {
      const rename = autocommitStatement(
        (_, { from, to, ids }: { from: string; to: string; ids: string[] }) =>
          sql<Row<'partner', 'id' | 'name'>>`
          WITH due AS (
            SELECT id FROM partner WHERE id = any(${ids}) AND name = ${from} ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)
          UPDATE partner p SET name = ${to} || ${from} FROM due WHERE p.id = due.id
          RETURNING ${columnList('partner', ['id', 'name'], 'p')}`,
      );
      const ids = [newId('prt'), newId('prt')];
      const insert = autocommitStatement((db, values: { id: string }) =>
        db.insertInto('partner').values({ id: values.id, name: 'a' }),
      );
      for (const id of ids) await insert(orm, { id });
      const rows = await rename(orm, { from: 'a', to: 'b', ids });
      assert.deepEqual(
        rows.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
        ids.toSorted().map((id) => ({ id, name: 'ba' })),
      );
      assert.deepEqual(await rename(orm, { from: 'a', to: 'b', ids }), []);
    });

    it('page through the newest rows of a key', async () => {
      const page = readStatement(
        (_, { actor, before, limit }: { actor: string; before: string; limit: number }) =>
          newestRows({
            table: 'audit_entry',
            columns: ['id', 'action'],
            where: { actor, action: sql.lit('looked') },
            ...{ id: 'id', before, limit },
          }),
      );
      await orm.em.fork().execute(
        `INSERT INTO audit_entry (id, actor, action, subject, detail)
         SELECT 'aud_' || n, 'ada', CASE n WHEN 3 THEN 'wrote' ELSE 'looked' END, 'x', '{}' FROM generate_series(1, 5) n`,
      );
      assert.deepEqual(await page(orm.em.fork(), { actor: 'ada', before: 'aud_5', limit: 2 }), [
        { id: 'aud_4', action: 'looked' },
        { id: 'aud_2', action: 'looked' },
      ]);
    });

    it('are refused if a read would write or lock', () => {
      for (const text of [
        'INSERT INTO partner (id) VALUES (1)',
        `UPDATE partner SET name = ''`,
        'WITH gone AS (DELETE FROM partner RETURNING 1) SELECT 1 FROM gone',
        'SELECT 1 FROM partner FOR UPDATE',
        'SELECT 1 FROM partner FOR NO KEY UPDATE SKIP LOCKED',
        'SELECT 1 FROM partner FOR SHARE',
      ]) {
        assert.throws(() => readStatement(() => sql.raw(text)), /use writeStatement/);
      }
      assert.throws(
        () => readStatement((db) => db.selectFrom('partner').select('id').forUpdate()),
        /use writeStatement/,
      );
    });
  });
});

/** Never run: the compiler has to find each of these wrong. */
void ((tx: EntityManager) => [
  // @ts-expect-error: no such column
  readStatement((db) => db.selectFrom('card').select('iban')),
  // @ts-expect-error: no such table
  readStatement((db) => db.selectFrom('cards').select('id')),
  // @ts-expect-error: no such status
  readStatement((db) => db.selectFrom('card').select('id').where('status', '=', 'lost')),
  // @ts-expect-error: a read does not write
  readStatement((db) => db.deleteFrom('card')),
  // @ts-expect-error: name is missing
  writeStatement((db) => db.insertInto('partner').values({ id: 'prt_1' })),
  // @ts-expect-error: a write needs a transaction's EntityManager
  writeStatement((db) => db.deleteFrom('partner'))(tx, {}),
  // @ts-expect-error: no such column
  columnList('card', ['iban']),
  // @ts-expect-error: no such column in the key
  newestRows({ table: 'card', columns: ['id'], where: { iban: '' }, id: 'id', limit: 1 }),
]);

const MOST = '9007199254740991';

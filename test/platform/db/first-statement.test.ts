import assert from 'node:assert/strict';
import type { Orm } from '../../../platform/db/orm.ts';
import { query } from '../../../platform/db/sql.ts';
import { transaction } from '../../../platform/db/transaction.ts';
import { createTestDatabase, openOwnerOrm } from '../../support/postgres.ts';

describe("a transaction's BEGIN, which goes out with its first statement,", () => {
  let orm: Orm;
  before(async () => {
    orm = await openOwnerOrm(await createTestDatabase());
    // The first transaction of a connection prepares BEGIN.
    await transaction(orm, (tx) => query(tx, 'SELECT $1::int', [1]));
  });
  after(() => orm.close());

  const partnersNamed = async (name: string) =>
    (await query(orm.em.fork(), 'SELECT id FROM partner WHERE name = $1', [name])).length;
  const INSERT = 'INSERT INTO partner (id, name) VALUES ($1, $2)';

  it('makes one transaction of it and what follows', async () => {
    const id = 'SELECT pg_current_xact_id()::text AS id, $1::int';
    const [first, second] = await transaction(orm, async (tx) => [
      await query<{ id: string }>(tx, id, [1]),
      await query<{ id: string }>(tx, id, [2]),
    ]);
    assert.ok(first?.[0]?.id);
    assert.equal(second?.[0]?.id, first[0].id);
  });

  it('is rolled back with it if the work fails afterwards, and the connection goes on', async () => {
    const work = transaction(orm, async (tx) => {
      await query(tx, INSERT, ['prt_a', 'rolled back']);
      throw new Error('the work failed');
    });
    await assert.rejects(work, /the work failed/);
    assert.equal(await partnersNamed('rolled back'), 0);
    await transaction(orm, (tx) => query(tx, INSERT, ['prt_b', 'committed']));
    assert.equal(await partnersNamed('committed'), 1);
  });

  it('is rolled back if the statement itself fails, known to the connection or not', async () => {
    for (const name of ['failed', 'failed']) {
      const work = transaction(orm, async (tx) => {
        await query(tx, `${INSERT} RETURNING 1 / (length($2) - 6) AS never`, ['prt_c', name]);
      });
      await assert.rejects(work, /division by zero/);
    }
    await assert.rejects(
      transaction(orm, (tx) => query(tx, 'SELECT $1::int FROM there_is_no_such_table', [1])),
      /there_is_no_such_table/,
    );
    assert.equal(await partnersNamed('failed'), 0);
  });

  it('keeps the statement from running outside a transaction if it fails', async () => {
    await query(orm.em.fork(), 'DEALLOCATE begin');
    const work = transaction(orm, (tx) => query(tx, INSERT, ['prt_d', 'alone']));
    await assert.rejects(work, /prepared statement "begin" does not exist/);
    assert.equal(await partnersNamed('alone'), 0);
  });

  it('is sent before a statement without values, and not at all for no statement', async () => {
    const other = await openOwnerOrm(await createTestDatabase());
    try {
      await transaction(other, (tx) => query(tx, 'SELECT $1::int', [1]));
      await transaction(other, async () => {});
      const isTransaction = await transaction(other, async (tx) => {
        await query(tx, 'CREATE TEMPORARY TABLE kept (id int) ON COMMIT DROP');
        return query(tx, 'SELECT id FROM kept');
      });
      assert.deepEqual(isTransaction, []);
    } finally {
      await other.close();
    }
  });
});

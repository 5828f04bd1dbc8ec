import assert from 'node:assert/strict';
import { WORKER_ROLE } from '../../../db/login.ts';
import { openOrm } from '../../../db/orm.ts';
import { query } from '../../../db/sql.ts';
import { createTestDatabase } from '../../support/postgres.ts';

describe('openOrm', () => {
  it('works as the role that it is given, and binds values', async () => {
    const orm = await openOrm({ databaseUrl: await createTestDatabase(), poolSize: 2, role: WORKER_ROLE });
    try {
      const em = orm.em.fork();
      const rows = await query<{ role: string; n: number }>(
        em,
        'SELECT current_user AS role, $1::int + 1 AS n',
        [1],
      );
      assert.deepEqual(rows, [{ role: WORKER_ROLE, n: 2 }]);
      await em.transactional(async (tx) => {
        await query(tx, 'CREATE TEMP TABLE t (a int) ON COMMIT DROP');
        await query(tx, 'INSERT INTO t VALUES ($1)', [7]);
        assert.deepEqual(await query(tx, 'SELECT a FROM t WHERE a = $1', [7]), [{ a: 7 }]);
      });
    } finally {
      await orm.close();
    }
  });

  it('closes while connections are being opened', async () => {
    const databaseUrl = await createTestDatabase();
    for (let attempt = 0; attempt < 3; attempt++) {
      const orm = await openOrm({ databaseUrl, poolSize: 4 });
      const asked = Promise.allSettled(
        Array.from({ length: 4 }, () => query(orm.em.fork(), 'SELECT $1::int', [1])),
      );
      await new Promise((resolve) => setTimeout(resolve, attempt));
      await orm.close();
      await asked;
    }
  });
});

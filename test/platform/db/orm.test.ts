import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { Connection } from '../../../platform/db/connection.ts';
import { openOrm } from '../../../platform/db/orm.ts';
import { Pool } from '../../../platform/db/pool.ts';
import { query } from '../../../platform/db/sql.ts';
import { transaction } from '../../../platform/db/transaction.ts';
import { createTestDatabase } from '../../support/postgres.ts';

describe('openOrm', () => {
  it('reads dates and times as text, alone and in arrays, and other values as the driver does', async () => {
    const orm = await openOrm({ databaseUrl: await createTestDatabase(), poolSize: 1 });
    try {
      const [row] = await query(
        orm.em.fork(),
        `SELECT '2026-01-02'::date AS day, '{2026-01-02 03:04:05+00,NULL}'::timestamptz[] AS times, 1::int AS whole,
           '9007199254740993'::bigint AS large, '{"a":[1]}'::jsonb AS json, '{a,b}'::text[] AS texts`,
      );
      assert.deepEqual(row, {
        day: '2026-01-02',
        times: ['2026-01-02 03:04:05+00', null],
        whole: 1,
        large: '9007199254740993',
        json: { a: [1] },
        texts: ['a', 'b'],
      });
    } finally {
      await orm.close();
    }
  });

  it('closes while connections are being opened', async () => {
    const databaseUrl = await createTestDatabase();
    const moments: ((asked: Promise<unknown>[]) => unknown)[] = [
      () => 'at once',
      () => new Promise(setImmediate),
      (asked) => Promise.race(asked),
    ];
    for (const moment of moments) {
      const orm = await openOrm({ databaseUrl, poolSize: 4 });
      const asked = Array.from({ length: 4 }, () => query(orm.em.fork(), 'SELECT $1::int', [1]));
      const settled = Promise.allSettled(asked);
      await moment(asked);
      await orm.close();
      await settled;
    }
  });

  it('closes when the transaction that is open has ended, and begins no other', async () => {
    const orm = await openOrm({ databaseUrl: await createTestDatabase(), poolSize: 2 });
    const begun = Promise.withResolvers<void>();
    const mayEnd = Promise.withResolvers<void>();
    const open = transaction(orm, async (tx) => {
      await query(tx, 'SELECT $1::int', [1]);
      begun.resolve();
      await mayEnd.promise;
      return query(tx, 'SELECT $1::int AS two', [2]);
    });
    await begun.promise;
    const closed = orm.close();
    mayEnd.resolve();
    assert.deepEqual(await open, [{ two: 2 }]);
    await closed;
    await assert.rejects(query(orm.em.fork(), 'SELECT 1'));
  });
});

describe('a pool whose server accepts connections and then says nothing', () => {
  it('ends them when it is closed, and refuses whoever waits for them', async () => {
    const silent = createServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    const pool = new Pool({
      size: 1,
      shares: undefined,
      create: () =>
        new Connection({
          connectionString: `postgres://a:b@127.0.0.1:${port}/c`,
          prepares: true,
          maxResponseMs: 0,
        }),
      check: async () => {},
    });
    try {
      const refused = [pool.acquireConnection(), pool.acquireConnection()].map((asked) =>
        assert.rejects(asked, /Connection terminated/),
      );
      const [socket] = (await once(silent, 'connection')) as [Socket];
      const ended = once(socket.resume(), 'close');
      await pool.destroy();
      await Promise.all([...refused, ended]);
    } finally {
      silent.close();
    }
  });
});

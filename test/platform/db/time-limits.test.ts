import assert from 'node:assert/strict';
import type pg from 'pg';
import { isOutage } from '../../../api/http/errors.ts';
import { newId } from '../../../platform/crypto/new-id.ts';
import { OPERATOR_ROLE, WORKER_ROLE } from '../../../platform/db/login.ts';
import { type Orm, openOrm } from '../../../platform/db/orm.ts';
import {
  checkSession,
  SERVICE_LIMITS,
  SessionUnlimited,
  type TimeLimits,
} from '../../../platform/db/session.ts';
import { query, type Reader } from '../../../platform/db/sql.ts';
import { transaction } from '../../../platform/db/transaction.ts';
import { asAccount, asService, untilAborted } from '../../../platform/process/work-context.ts';
import { column } from '../../support/column.ts';
import { connectTo, createTestDatabase, ownerUrlOf } from '../../support/postgres.ts';
import { until } from '../../support/until.ts';

const HURRIED: TimeLimits = { lockMs: 300, idleInTransactionMs: 1_000, statementMs: 1_500 };

/** How many sessions of this database run a statement or have a transaction, beside the asking one. */
async function busySessions(owner: pg.Client): Promise<number> {
  const { rows } = await owner.query<{ busy: number }>(
    `SELECT count(*)::int AS busy FROM pg_stat_activity
     WHERE datname = current_database() AND backend_type = 'client backend' AND state <> 'idle' AND pid <> pg_backend_pid()`,
  );
  return rows[0]?.busy ?? 0;
}

describe('the database time limits', () => {
  let databaseUrl: string;
  let orm: Orm;
  let partnerId: string;
  let owner: pg.Client;
  before(async () => {
    databaseUrl = await createTestDatabase();
    orm = await openOrm({
      databaseUrl: ownerUrlOf(databaseUrl),
      poolSize: 2,
      limits: HURRIED,
      role: OPERATOR_ROLE,
      onOwnerLogin: () => {},
    });
    owner = await connectTo(ownerUrlOf(databaseUrl));
  });
  beforeEach(async () => {
    partnerId = newId('prt');
    await query(orm.em.fork(), `INSERT INTO partner (id, name) VALUES ($1, '')`, [partnerId]);
  });
  after(async () => {
    await owner.end();
    await orm.close();
  });

  const rename = (tx: Reader, name: string) =>
    query(tx, 'UPDATE partner SET name = $2 WHERE id = $1', [partnerId, name]);
  const nameNow = async () =>
    (await owner.query('SELECT name FROM partner WHERE id = $1', [partnerId])).rows[0].name;
  /** That both connections of the pool can be used. */
  const assertWhole = () =>
    Promise.all([1, 2].map(() => transaction(orm, (tx) => query(tx, 'SELECT pg_sleep(0.05)'))));
  const rejectsAsOutage = (work: Promise<unknown>, code?: string) =>
    assert.rejects(work, (error: Error & { code?: string; cause?: { code?: string } }) => {
      if (code !== undefined) assert.equal(error.code ?? error.cause?.code, code);
      assert.ok(isOutage(error), `${error.name}: ${error.message}`);
      return true;
    });

  it('grow from a lock to an idle transaction, a statement and an attempt', () => {
    const { lockMs, idleInTransactionMs, statementMs } = SERVICE_LIMITS;
    const inOrder = [lockMs, idleInTransactionMs, statementMs, 10_000];
    for (const [index, ms] of inOrder.slice(1).entries()) assert.ok(ms > (inOrder[index] ?? 0));
  });

  it('roll back a transaction that is idle', async () => {
    const frozen = Promise.withResolvers<void>();
    const stuck = transaction(orm, async (tx) => {
      await rename(tx, 'half-done');
      await frozen.promise;
      await query(tx, 'SELECT 1');
    });
    // Its lock is free without its doing.
    for (let isFree = false; !isFree; ) {
      isFree = await transaction(orm, (tx) => rename(tx, 'done')).then(
        () => true,
        () => false,
      );
    }
    frozen.resolve();
    await rejectsAsOutage(stuck);
    assert.equal(await nameNow(), 'done');
    await assertWhole();
  });

  it('end a wait for a lock, and the transaction can run again', async () => {
    await owner.query('BEGIN');
    await owner.query('SELECT FROM partner WHERE id = $1 FOR UPDATE', [partnerId]);
    try {
      await rejectsAsOutage(
        transaction(orm, (tx) => rename(tx, 'renamed')),
        '55P03',
      );
    } finally {
      await owner.query('ROLLBACK');
    }
    await transaction(orm, (tx) => rename(tx, 'renamed'));
    assert.equal(await nameNow(), 'renamed');
    await assertWhole();
  });

  it('end a statement that takes too long', async () => {
    await rejectsAsOutage(query(orm.em.fork(), 'SELECT pg_sleep(60)'), '57014');
    await assertWhole();
  });

  it('end a connection on which PostgreSQL does not answer in time', async () => {
    let backend = 0;
    const unanswered = transaction(orm, async (tx) => {
      const [row] = await query<{ pid: number }>(tx, 'SELECT pg_backend_pid() AS pid');
      backend = row?.pid ?? 0;
      const answer = query(tx, 'SELECT pg_sleep(60)');
      process.kill(backend, 'SIGSTOP');
      await answer;
    });
    try {
      await rejectsAsOutage(unanswered);
      await assertWhole();
    } finally {
      process.kill(backend, 'SIGCONT');
    }
  });

  it('end the statement, transaction and wait for a turn of abandoned work', async () => {
    const givenUp = new AbortController();
    const asleep = untilAborted(givenUp.signal, () =>
      transaction(orm, async (tx) => {
        await rename(tx, 'given up');
        await query(tx, 'SELECT pg_sleep(1.4)');
      }),
    );
    const idle = untilAborted(givenUp.signal, () =>
      transaction(orm, async (tx) => {
        await query(tx, 'SELECT 1');
        await new Promise((resolve) => givenUp.signal.addEventListener('abort', resolve));
        await query(tx, 'SELECT 1');
      }),
    );
    const begun = Promise.allSettled([asleep, idle]);
    await until('both are under way', async () => (await busySessions(owner)) === 2);
    const waiting = assert.rejects(
      untilAborted(givenUp.signal, () => query(orm.em.fork(), 'SELECT 1')),
      /given up/,
    );
    givenUp.abort(new Error('given up'));
    assert.deepEqual(column(await begun, 'status'), ['rejected', 'rejected']);
    await waiting;
    await assert.rejects(
      untilAborted(givenUp.signal, () => query(orm.em.fork(), 'SELECT 1')),
      /given up/,
    );
    await assertWhole();
    assert.equal(await nameNow(), '');
  });

  it("are found missing if a pooler drops a session's settings", async () => {
    await using direct = await connectTo(ownerUrlOf(databaseUrl));
    await assert.rejects(checkSession(direct, SERVICE_LIMITS), SessionUnlimited);
    await assert.rejects(checkSession(direct, SERVICE_LIMITS), /lock_timeout = '4000ms'.*ALTER ROLE/);
    await direct.query(
      `SET lock_timeout = '3s'; SET statement_timeout = '8s'; SET idle_in_transaction_session_timeout = '5s'`,
    );
    await checkSession(direct, SERVICE_LIMITS);
    await direct.query(`SET lock_timeout = '5s'`);
    await assert.rejects(checkSession(direct, SERVICE_LIMITS), /lock_timeout/);
  });

  it('apply to every session of the service', async () => {
    const service = await openOrm({ databaseUrl, poolSize: 1, role: WORKER_ROLE });
    try {
      const [row] = await query<Record<string, string>>(
        service.em.fork(),
        `SELECT current_user AS role, current_setting('lock_timeout') AS lock,
           current_setting('idle_in_transaction_session_timeout') AS idle,
           current_setting('statement_timeout') AS statement,
           current_setting('client_connection_check_interval') AS client`,
      );
      const limits = { lock: '4s', idle: '5s', statement: '8s', client: '1s' };
      assert.deepEqual(row, { role: WORKER_ROLE, ...limits });
    } finally {
      await service.close();
    }
  });
});

describe('turns at a connection pool', () => {
  const accountOf = (partnerId: string) => ({ partnerId, mode: 'live' }) as const;
  let orm: Orm;
  let owner: pg.Client;
  before(async () => {
    const databaseUrl = await createTestDatabase();
    orm = await openOrm({ databaseUrl, poolSize: 8, shares: { accounts: 4, eachAccount: 2 } });
    owner = await connectTo(ownerUrlOf(databaseUrl));
  });
  after(async () => {
    await owner.end();
    await orm.close();
  });

  type Work = () => Promise<unknown>;
  for (const [who, asOne, asOther] of [
    [
      'account',
      (work: Work) => asAccount(accountOf('prt_flood'), work),
      (work: Work) => asAccount(accountOf('prt_quiet'), work),
    ],
    [
      'part of the service',
      (work: Work) => asService('a part', work),
      (work: Work) => asService('another part', work),
    ],
  ] as const) {
    it(`give one ${who} no more than its share, however much it has to do`, async () => {
      const stop = new AbortController();
      const sleep = () => untilAborted(stop.signal, () => query(orm.em.fork(), 'SELECT pg_sleep(60)'));
      const flood = Promise.allSettled(Array.from({ length: 50 }, () => asOne(sleep)));
      await until('it has its part', async () => (await busySessions(owner)) === 2);
      // They would wait in vain if they stood behind it.
      await Promise.all([
        ...[1, 2, 3].map(() => asOther(() => transaction(orm, (tx) => query(tx, 'SELECT 1')))),
        ...[1, 2, 3].map(() => query(orm.em.fork(), 'SELECT 1')),
      ]);
      assert.ok((await busySessions(owner)) <= 2);
      stop.abort(new Error('enough'));
      await flood;
      await until(
        'PostgreSQL has ended what nobody waits for',
        async () => (await busySessions(owner)) === 0,
      );
    });
  }

  it('are not needed by work that already has a connection', async () => {
    await assert.rejects(
      transaction(orm, async () => {
        await query(orm.em.fork(), 'SELECT 1');
      }),
      /inside a transaction/,
    );
    await transaction(orm, (tx) => query(tx, 'SELECT 1'));
  });
});

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { startApi } from '../../api/server.ts';
import { createLogin, urlFor } from '../../dev/postgres/logins.ts';
import { API_ROLE, LoginRefused, type Role, WORKER_ROLE } from '../../platform/db/login.ts';
import { type OrmOptions, openOrm } from '../../platform/db/orm.ts';
import { query } from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { startWorker } from '../../worker/start-worker.ts';
import { createCard } from '../support/cards.ts';
import { assertLedgerClean, fundedPartner } from '../support/money.ts';
import { findPgbouncer, type Pgbouncer, startPgbouncer } from '../support/pgbouncer.ts';
import { asOwner, createTestDatabase, ownerUrlOf } from '../support/postgres.ts';
import { startTestStack, testConfig, testWorkflowBundle } from '../support/stack.ts';
import { until } from '../support/until.ts';
import { setUrl } from '../support/webhooks/events.ts';
import { answer, startReceiver } from '../support/webhooks/receiver.ts';

/** What docs/operating.md ("Behind a pooler") has a login given, beside its role. */
const SETTINGS = [
  `SET lock_timeout = '4s'`,
  `SET idle_in_transaction_session_timeout = '5s'`,
  `SET statement_timeout = '8s'`,
  `SET client_connection_check_interval = '1s'`,
];

describe('the service behind PgBouncer in transaction mode', () => {
  let databaseUrl: string;
  let settled: string;
  let settledApi: string;
  let unsettled: string;
  let pgbouncer: Pgbouncer;
  /** One that drops `options` instead of refusing them. */
  let careless: Pgbouncer;
  before(async function () {
    const program = findPgbouncer();
    if (program === undefined) return this.skip();
    databaseUrl = await createTestDatabase();
    settled = await login(WORKER_ROLE, [`SET role = '${WORKER_ROLE}'`, ...SETTINGS]);
    settledApi = await login(API_ROLE, [`SET role = '${API_ROLE}'`, ...SETTINGS]);
    unsettled = await login(WORKER_ROLE, []);
    pgbouncer = await startPgbouncer(program, [settled, settledApi, unsettled]);
    const ignoring = ['ignore_startup_parameters = options'];
    careless = await startPgbouncer(program, [settled, settledApi, unsettled], ignoring);
  });
  after(async () => {
    await pgbouncer?.stop();
    await careless?.stop();
  });

  async function login(role: Role, settings: readonly string[]): Promise<string> {
    const made = { user: `pooled_${randomUUID().slice(0, 8)}`, password: 'p' };
    await createLogin(ownerUrlOf(databaseUrl), { ...made, role });
    await asOwner(
      databaseUrl,
      settings.map((setting) => `ALTER ROLE ${made.user} ${setting}`),
    );
    return urlFor(databaseUrl, made);
  }

  it('does all of its work on fewer connections than its own pools have', async () => {
    const stack = await startTestStack(
      {
        databaseUrl: pgbouncer.through(settledApi),
        databaseDirectUrl: settledApi,
        cardCreationWaitMs: 60_000,
      },
      { worker: false, hosted: true },
    );
    const worker = await startWorker(
      { ...stack.config, databaseUrl: pgbouncer.through(settled), databaseDirectUrl: settled },
      pino({ level: 'silent' }),
      { workflowBundle: await testWorkflowBundle() },
    );
    const receiver = await startReceiver();
    try {
      receiver.behave((request, response) => answer(200)(request, response, 0));
      const partner = await fundedPartner(stack);
      await setUrl(stack, partner, receiver.url);
      const created = await Promise.all(
        Array.from({ length: 30 }, (_, i) =>
          createCard(partner, { amount: 1_000 }, { mode: i % 3 === 0 ? 'live' : 'test' }),
        ),
      );
      assert.deepEqual([...new Set(created.map(({ status }) => status))], [201]);
      const [live] = created;
      const changes = await Promise.all(
        ['freeze', 'unfreeze'].map((change) =>
          partner.call('POST', `/cards/${live?.json.id}/${change}`, {
            mode: 'live',
            idempotencyKey: randomUUID(),
          }),
        ),
      );
      assert.ok(changes.some(({ status }) => status === 200));
      const test = created.filter((_, i) => i % 3 !== 0).map(({ json }) => json.id);
      await until('the events of test mode are delivered', async () => {
        const about = new Set(receiver.received.map(({ body }) => JSON.parse(body).data.card?.id));
        return test.every((id) => about.has(id));
      });
      await assertLedgerClean(stack);
      const [row] = await asOwner<{ connections: number; listening: number }>(
        databaseUrl,
        `SELECT count(*)::int AS connections, count(*) FILTER (WHERE query LIKE 'LISTEN %')::int AS listening
         FROM pg_stat_activity WHERE usename IN ('${new URL(settled).username}', '${new URL(settledApi).username}')`,
      );
      // The pools' four each, LISTEN of the API and of the worker's inbox, webhooks and deposits, and what the test itself
      // looks with.
      assert.ok((row?.connections ?? 0) <= 2 * 4 + 4 + 4, `${row?.connections} connections`);
      assert.equal(row?.listening, 4);
    } finally {
      await worker.stop();
      await stack.stop();
      await receiver.stop();
    }
  });

  it('leaves nothing of an interrupted transaction to the next user of its connection', async () => {
    const orm = await openOrm({
      ...{ databaseUrl: pgbouncer.through(settled), poolSize: 8, role: WORKER_ROLE, pooled: true },
    });
    try {
      await Promise.all(
        Array.from({ length: 20 }, async (_, i) => {
          const work = transaction(orm, async (tx) => {
            await query(tx, `SELECT set_config('lock_timeout', '1ms', true), $1::int`, [i]);
            if (i % 2 === 0) throw new Error('given up');
          });
          if (i % 2 === 0) await assert.rejects(work, /given up/);
          else await work;
        }),
      );
      const rows = await Promise.all(
        Array.from({ length: 8 }, (_, i) =>
          query(
            orm.em.fork(),
            `SELECT current_setting('lock_timeout') AS lock, current_user AS role, $1::int AS i`,
            [i],
          ),
        ),
      );
      assert.deepEqual(
        rows.flat(),
        rows.map((_, i) => ({ lock: '4s', role: WORKER_ROLE, i })),
      );
    } finally {
      await orm.close();
    }
  });

  const refused = (url: string, why: RegExp, more: Partial<OrmOptions> = {}) =>
    assert.rejects(openOrm({ databaseUrl: url, poolSize: 1, role: WORKER_ROLE, ...more }), (error: Error) => {
      assert.ok(error instanceof LoginRefused, String(error));
      assert.match(error.message, why);
      return true;
    });

  it('refuses to start if it was not told, whether the pooler drops or refuses its settings', async () => {
    await refused(
      pgbouncer.through(settled),
      /refuses the startup settings of this process .*Set DATABASE_DIRECT_URL/,
    );
    await refused(careless.through(settled), /A connection pooler stands between .*Set DATABASE_DIRECT_URL/);
    await refused(careless.through(unsettled), /Set DATABASE_DIRECT_URL/);
  });

  it('refuses a login that has no role by default', async () => {
    await refused(
      pgbouncer.through(unsettled),
      /works as "pooled_\w+", not as .*ALTER ROLE "pooled_\w+" SET role/,
      {
        pooled: true,
      },
    );
  });

  it('requires DATABASE_DIRECT_URL to be PostgreSQL itself', async () => {
    const config = await testConfig({
      databaseUrl: pgbouncer.through(settledApi),
      databaseDirectUrl: careless.through(settledApi),
    });
    await assert.rejects(startApi(config, pino({ level: 'silent' })), /A connection pooler stands between/);
  });
});

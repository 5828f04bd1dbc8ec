import assert from 'node:assert/strict';
import { pino } from 'pino';
import { CardNetworkUnavailable } from '../../issuers/card-network.ts';
import { createRequestBudget, type TurnClass } from '../../issuers/request-budget.ts';
import { type Orm, openOrm } from '../../platform/db/orm.ts';
import { query } from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { asAccount } from '../../platform/process/work-context.ts';
import { asOwner, createTestDatabase } from '../support/postgres.ts';
import { until } from '../support/until.ts';

describe('the budget of requests to a card network', () => {
  let databaseUrl: string;
  let orms: Orm[];
  beforeEach(async () => {
    databaseUrl = await createTestDatabase();
    orms = [];
  });
  afterEach(() => Promise.all(orms.map((orm) => orm.close())));

  /** The budget as another process has it. */
  async function processWith(perSecond: number, poolSize = 4, network = 'lithic') {
    const orm = await openOrm({ databaseUrl, poolSize });
    orms.push(orm);
    const budget = createRequestBudget({
      orm,
      network,
      perSecond,
      logger: pino({ enabled: false }),
    });
    return { orm, ...budget };
  }

  /** Takes turns one after the other, until `signal` is aborted. */
  function flood(budget: { takeTurn: Take }, turn: TurnClass, lines: number, signal: AbortSignal) {
    const taken = { count: 0 };
    const line = async () => {
      while (!signal.aborted) {
        await budget.takeTurn(turn, signal).then(
          () => {
            taken.count += 1;
          },
          (error) => assert.ok(error instanceof CardNetworkUnavailable, error),
        );
      }
    };
    return { taken, ended: Promise.all(Array.from({ length: lines }, line)) };
  }
  type Take = (turn: TurnClass, signal: AbortSignal | null) => Promise<void>;

  it('needs no preparation for a new network: its first requests add its row, however many come at once', async () => {
    const processes = [await processWith(100, 4, 'another'), await processWith(100, 4, 'another')];
    await Promise.all(
      processes.flatMap(({ takeTurn }) => Array.from({ length: 4 }, () => takeTurn('operation', null))),
    );
    const rows = await asOwner(databaseUrl, "SELECT FROM request_budget WHERE network = 'another'");
    assert.equal(rows.length, 1);
  });

  it('is shared by all processes: each turn of each of them fills the same bucket', async () => {
    const processes = [await processWith(20), await processWith(20)];
    const [before] = await asOwner<{ now: Date }>(databaseUrl, 'SELECT clock_timestamp() AS now');
    await Promise.all(
      processes.flatMap(({ takeTurn }) => Array.from({ length: 15 }, () => takeTurn('operation', null))),
    );
    const [after] = await asOwner<{ full_at: Date }>(
      databaseUrl,
      "SELECT full_at FROM request_budget WHERE network = 'lithic'",
    );
    const ms = Number(after?.full_at) - Number(before?.now);
    assert.ok(ms >= 1_500, `30 requests at 20 a second fill the bucket for ${ms} ms`);
  });

  // So seldom that no time passes for it during a test: one request in 1,000 seconds, and four of them at once.
  const SELDOM = 0.001;
  const ALL: TurnClass[] = ['authorization', 'reveal', 'operation', 'event', 'reconciliation'];

  /** The bucket is full again after so many seconds, and each class has its promised turn after so many. */
  const setRow = (fullSeconds: number, promisedSeconds: number) =>
    asOwner(
      databaseUrl,
      `UPDATE request_budget SET full_at = now() + $1 * interval '1 second', ${ALL.map(
        (turn) => `${turn}_promised_at = now() + $2 * interval '1 second'`,
      ).join(', ')} WHERE network = 'lithic'`,
      [fullSeconds, promisedSeconds],
    );
  const isTaken = (taking: Promise<void>) =>
    taking.then(
      () => true,
      (error) => assert.ok(error instanceof CardNetworkUnavailable, error),
    );

  for (const [fullSeconds, served] of [
    [2_850, ALL.slice(0, 1)],
    [2_400, ALL.slice(0, 2)],
    [1_800, ALL.slice(0, 3)],
    [1_200, ALL.slice(0, 4)],
    [600, ALL],
  ] as const) {
    it(`has turns for ${served.join(', ')} if ${fullSeconds} of 4,000 seconds are used`, async () => {
      const { takeTurn } = await processWith(SELDOM);
      const taken = [];
      for (const turn of ALL) {
        await setRow(fullSeconds, 4_000);
        if ((await isTaken(takeTurn(turn, null))) === true) taken.push(turn);
      }
      assert.deepEqual(taken, served);
    });
  }

  it('lets no class starve: with nothing left, each has its promised turn, and the next one later', async () => {
    const { takeTurn } = await processWith(SELDOM);
    await setRow(5_000, 0);
    for (const turn of ALL) {
      assert.equal(await isTaken(takeTurn(turn, null)), true);
      assert.notEqual(await isTaken(takeTurn(turn, null)), true);
    }
    const [row] = await asOwner<Record<string, string>>(
      databaseUrl,
      `SELECT ${ALL.map((turn) => `round(extract(epoch FROM ${turn}_promised_at - now()) / 1000) AS ${turn}`).join(', ')}
       FROM request_budget WHERE network = 'lithic'`,
    );
    assert.deepEqual(
      ALL.map((turn) => Number(row?.[turn])),
      [5, 5, 5, 10, 20],
    );
  });

  it('has the turns of several requests at once, or none of them, and counts each', async () => {
    const { takeTurn } = await processWith(SELDOM);
    await setRow(2_850, 4_000);
    assert.notEqual(await isTaken(takeTurn('operation', null, 3)), true);
    await setRow(0, 4_000);
    assert.equal(await isTaken(takeTurn('operation', null, 3)), true);
    const [row] = await asOwner<Record<string, string>>(
      databaseUrl,
      `SELECT round(extract(epoch FROM full_at - now()) / 1000) AS full,
         round(extract(epoch FROM operation_promised_at - now()) / 1000) AS promised
       FROM request_budget WHERE network = 'lithic'`,
    );
    assert.deepEqual([Number(row?.full), Number(row?.promised)], [3, 15]);
    assert.notEqual(await isTaken(takeTurn('operation', null)), true);
  });

  it('is taken in turns by accounts', async () => {
    const { takeTurn } = await processWith(8);
    const stop = new AbortController();
    const account = (partnerId: string) => ({ partnerId, mode: 'live' as const });
    const flooded = asAccount(account('a'), () => flood({ takeTurn }, 'operation', 200, stop.signal));
    await until('the bucket is empty', async () => flooded.taken.count > 0);
    await asAccount(account('b'), () => takeTurn('operation', null));
    stop.abort();
    await flooded.ended;
  });

  it('has every process wait when the network answered 429, and refuses what can not wait for so long', async () => {
    const [one, other] = [await processWith(1_000), await processWith(1_000)];
    await one.noteRetryAfter(30_000);
    for (const turn of ['authorization', 'reveal', 'operation', 'event'] as const)
      await assert.rejects(other.takeTurn(turn, null), CardNetworkUnavailable);
    await assert.rejects(other.takeTurn('reconciliation', AbortSignal.timeout(50)), CardNetworkUnavailable);
    const samples = await other.metrics[0]?.get();
    const count = samples?.values.find(
      ({ labels, metricName }: { labels: object; metricName?: string }) =>
        metricName?.endsWith('_count') && 'class' in labels && labels.class === 'reconciliation',
    );
    assert.deepEqual([count?.labels, count?.value], [{ class: 'reconciliation', outcome: 'given_up' }, 1]);
  });

  it('goes on at once after the clock of the database was set back by an hour', async () => {
    const { takeTurn, noteRetryAfter } = await processWith(8);
    await takeTurn('operation', null);
    await setRow(3_600, 3_600);
    await asOwner(databaseUrl, "UPDATE request_budget SET paused_until = now() + interval '1 hour'");
    for (const turn of ALL) await takeTurn(turn, null);
    await noteRetryAfter(30_000);
    const [row] = await asOwner<{ is_now: boolean }>(
      databaseUrl,
      `SELECT paused_until BETWEEN now() + interval '10 s' AND now() + interval '30 s' AS is_now
       FROM request_budget WHERE network = 'lithic'`,
    );
    assert.equal(row?.is_now, true);
  });

  it('believes no pause of more than a minute, and a shorter one ends no longer one', async () => {
    const { noteRetryAfter } = await processWith(1_000);
    await noteRetryAfter(86_400_000);
    await noteRetryAfter(1);
    const [row] = await asOwner<{ is_bounded: boolean }>(
      databaseUrl,
      `SELECT paused_until BETWEEN now() + interval '20 s' AND now() + interval '60 s' AS is_bounded
       FROM request_budget WHERE network = 'lithic'`,
    );
    assert.equal(row?.is_bounded, true);
  });

  it('lets reveals and authorizations pass if the database is busy, and nothing else', async () => {
    const { orm, takeTurn } = await processWith(1_000, 1);
    const { promise, resolve } = Promise.withResolvers<void>();
    const { promise: isHeld, resolve: held } = Promise.withResolvers<void>();
    const holding = transaction(orm, async (tx) => {
      await query(tx, 'SELECT 1');
      held();
      await promise;
    });
    await isHeld;
    await takeTurn('authorization', null);
    await takeTurn('reveal', null);
    await assert.rejects(takeTurn('operation', null), CardNetworkUnavailable);
    resolve();
    await holding;
    await takeTurn('operation', null);
  });
});

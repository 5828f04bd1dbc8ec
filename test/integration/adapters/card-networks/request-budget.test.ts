import assert from 'node:assert/strict';
import { pino } from 'pino';
import { createRequestBudget, type TurnClass } from '../../../../adapters/card-networks/request-budget.ts';
import { type Orm, openOrm } from '../../../../db/orm.ts';
import { query } from '../../../../db/sql.ts';
import { transaction } from '../../../../db/transaction.ts';
import { CardNetworkUnavailable } from '../../../../domain/card-network.ts';
import { asAccount } from '../../../../process/work-context.ts';
import { asOwner, createTestDatabase } from '../../../support/postgres.ts';
import { until } from '../../../support/until.ts';

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

  it('is shared by all processes', async () => {
    const processes = [await processWith(20), await processWith(20)];
    const fromMs = performance.now();
    await Promise.all(
      processes.flatMap(({ takeTurn }) => Array.from({ length: 15 }, () => takeTurn('operation', null))),
    );
    // Of 30, at most 9 are taken at once: the bucket's 10 without the reserve, and one that is promised.
    const seconds = (performance.now() - fromMs) / 1_000;
    assert.ok(seconds > 1, `30 requests at 20 a second took ${seconds} s`);
  });

  it('keeps room for reveals and authorizations while reconciliations read', async () => {
    const [reads, api] = [await processWith(2), await processWith(2)];
    const stop = new AbortController();
    const flooded = flood(reads, 'reconciliation', 50, stop.signal);
    await until('the reads have taken what they can', async () => flooded.taken.count > 0);
    const before = flooded.taken.count;
    await api.takeTurn('reveal', null);
    await api.takeTurn('authorization', null);
    const meanwhile = flooded.taken.count - before;
    stop.abort();
    await flooded.ended;
    assert.ok(meanwhile < 10, `${meanwhile} reads came first`);
  });

  it('lets no class starve, however much the others send', async () => {
    const [api, worker] = [await processWith(40), await processWith(40)];
    const stop = new AbortController();
    const urgent = flood(api, 'authorization', 20, stop.signal);
    const operations = flood(worker, 'operation', 20, stop.signal);
    await until('the bucket is empty', async () => urgent.taken.count > 20);
    await worker.takeTurn('reconciliation', null);
    await worker.takeTurn('event', null);
    await worker.takeTurn('reconciliation', null);
    const [before, urgentBefore] = [operations.taken.count, urgent.taken.count];
    await until(
      'operations and authorizations go on',
      async () => operations.taken.count > before + 4 && urgent.taken.count > urgentBefore + 4,
    );
    stop.abort();
    await Promise.all([urgent.ended, operations.ended]);
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

  it('makes every process wait when the network answered 429', async () => {
    const [one, other] = [await processWith(1_000), await processWith(1_000)];
    const fromMs = performance.now();
    await one.noteRetryAfter(600);
    await Promise.all([one, other].map(({ takeTurn }) => takeTurn('authorization', null)));
    const waitedMs = performance.now() - fromMs;
    assert.ok(waitedMs >= 590, `waited ${waitedMs} ms`);
  });

  it('refuses what would have to wait for longer than it can, and sends nothing', async () => {
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

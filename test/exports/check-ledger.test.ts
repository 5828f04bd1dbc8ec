import assert from 'node:assert/strict';
import { pino } from 'pino';
import { checkAndRecord, type LedgerCheck } from '../../exports/check-ledger.ts';
import { startCheckingLedger } from '../../exports/jobs.ts';
import { INVARIANT_NUMBERS } from '../../ledger/check-ledger.ts';
import { nextTime } from '../../platform/config/time-of-day.ts';
import { type Orm, openOrm } from '../../platform/db/orm.ts';
import { readMeasurement } from '../../platform/monitoring/measurements.ts';
import type { Repetition } from '../../platform/process/repeat.ts';
import { lockWaits } from '../support/lock-waits.ts';
import { operateIn } from '../support/operator/operate.ts';
import { asOwner, connectTo, createTestDatabase, operatorUrlOf, ownerUrlOf } from '../support/postgres.ts';
import { until } from '../support/until.ts';

describe('the daily ledger check', () => {
  let databaseUrl: string;
  let orm: Orm;
  const logged: string[] = [];
  const logger = pino({}, { write: (line: string) => logged.push(line) });
  const workers: Repetition[] = [];

  beforeEach(async () => {
    databaseUrl = await createTestDatabase();
    orm = await openOrm({ databaseUrl, poolSize: 4 });
    logged.length = 0;
  });
  afterEach(async () => {
    await Promise.all(workers.splice(0).map((worker) => worker.stop()));
    await orm.close();
  });

  function startWorkers(count: number): void {
    const direct = { databaseUrl, onOwnerLogin: undefined };
    for (let n = 0; n < count; n++)
      workers.push(startCheckingLedger({ orm, direct, at: { hour: 3, minute: 0 }, logger }));
  }
  const result = async () => (await readMeasurement<LedgerCheck>(orm, 'ledger_check'))?.result;
  const checked = () => until('the ledger is checked', result);
  const dueAt = async () => {
    const due = `SELECT due_at FROM measurement WHERE name = 'ledger_check'`;
    const [row] = await asOwner<{ due_at: Date }>(databaseUrl, due);
    return row?.due_at ?? assert.fail('nobody has measured');
  };

  it('is made by one of all workers, and is due again at the configured time', async () => {
    startWorkers(3);
    const { violations, durationSeconds } = await checked();
    assert.deepEqual(new Set(Object.values(violations)), new Set([0]));
    assert.ok(durationSeconds > 0);
    assert.equal(logged.filter((line) => line.includes('every invariant holds')).length, 1);
    const next = await dueAt();
    assert.ok(next > new Date());
    assert.match(next.toISOString(), /T03:00:00\.000Z$/);
  });

  it('reports the broken invariant in the log and in its result, until an operator has checked again', async () => {
    await asOwner(databaseUrl, 'ALTER TABLE ledger.entry DISABLE TRIGGER append_only');
    startWorkers(1);
    const { violations } = await checked();
    assert.equal(violations['11'], 1);
    assert.match(logged.join(), /operator -- ledger check/);

    await asOwner(databaseUrl, 'ALTER TABLE ledger.entry ENABLE TRIGGER append_only');
    const before = await dueAt();
    const { code } = await operateIn({ DATABASE_URL: operatorUrlOf(databaseUrl) })('ledger', 'check');
    assert.equal(code, 0);
    assert.equal((await checked()).violations['11'], 0);
    assert.deepEqual(await dueAt(), before);
  });

  it('counts what it has found, whatever keeps it from going on', async () => {
    await asOwner(databaseUrl, 'ALTER TABLE ledger.entry DISABLE TRIGGER append_only');
    let statements = 0;
    const beforeEach = async () => {
      statements += 1;
      if (statements === INVARIANT_NUMBERS.length + 1) throw new Error('it took too long');
    };
    await assert.rejects(checkAndRecord(orm, { reader: orm, nextAt: null, beforeEach }), /it took too long/);
    assert.equal((await checked()).violations['11'], 1);
  });

  it('ends at once when its worker stops, and another worker starts over', async () => {
    const holder = await connectTo(ownerUrlOf(databaseUrl));
    await holder.query('BEGIN; LOCK TABLE ledger.entry');
    try {
      startWorkers(1);
      await until('it waits for the table', async () => (await lockWaits(databaseUrl)) === 1);
      await workers.splice(0)[0]?.stop();
      assert.ok((await dueAt()) <= new Date());
    } finally {
      await holder.end();
    }
    startWorkers(1);
    await checked();
  });

  it('is at least an hour away, so that a check just before its time is enough', () => {
    const at = { hour: 3, minute: 0 };
    const next = (now: string) => nextTime(at, new Date(now)).toISOString();
    assert.equal(next('2026-03-01T01:59:59Z'), '2026-03-01T03:00:00.000Z');
    assert.equal(next('2026-03-01T02:30:00Z'), '2026-03-02T03:00:00.000Z');
    assert.equal(next('2026-03-01T03:00:00Z'), '2026-03-02T03:00:00.000Z');
    assert.equal(next('2026-12-31T23:00:00Z'), '2027-01-01T03:00:00.000Z');
  });
});

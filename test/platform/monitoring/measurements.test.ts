import assert from 'node:assert/strict';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { createDatabaseMetrics } from '../../../exports/metrics.ts';
import { type Orm, openOrm } from '../../../platform/db/orm.ts';
import {
  type Measured,
  measuredGauges,
  measurementMetrics,
} from '../../../platform/monitoring/measured-gauges.ts';
import { keepMeasurement, takeMeasurement } from '../../../platform/monitoring/measurements.ts';
import { lockWaits } from '../../support/lock-waits.ts';
import { asOwner, connectTo, createTestDatabase, ownerUrlOf } from '../../support/postgres.ts';
import { until } from '../../support/until.ts';

describe('a measurement of the whole database', () => {
  let orm: Orm;
  let databaseUrl: string;
  beforeEach(async () => {
    databaseUrl = await createTestDatabase();
    orm = await openOrm({ databaseUrl, poolSize: 8 });
  });
  afterEach(() => orm.close());

  /** The metrics of a process, which counts in `of` how often it measured. */
  function processThat(measure: () => Promise<number>) {
    const logged: string[] = [];
    const logger = pino({}, { write: (line: string) => logged.push(line) });
    const measured: Measured<number> = {
      name: 'webhooks',
      source: { everyMs: 60_000, measure },
      gauges: [{ name: 'things', help: 'Things', labels: ['of'], samples: (n) => [[['all'], n]] }],
    };
    const registry = new Registry();
    for (const metric of measurementMetrics([measuredGauges(measured, { orm, logger })]))
      registry.registerMetric(metric);
    const read = async () => (await registry.metrics()).split('\n').filter((line) => /^[^#]/.test(line));
    return { read, logged };
  }

  it('is taken by one process, and shown by all', async () => {
    let made = 0;
    const processes = Array.from({ length: 5 }, () => processThat(async () => 100 + ++made));
    await Promise.all(processes.map(({ read }) => read()));
    for (const { read } of processes) {
      const [time = '', things] = await read();
      assert.match(time, /^measurement_timestamp_seconds\{measurement="webhooks"\} \d+\.?\d*$/);
      assert.equal(things, 'things{of="all"} 101');
    }
    assert.equal(made, 1);
  });

  it('is due again if the process that took it died', async () => {
    const take = () => takeMeasurement(orm, 'webhooks', { leaseMs: 20, longestMs: 20 });
    assert.equal((await take()).isTaken, true);
    await until('it is due', async () => (await take()).isTaken);
  });

  it('is taken once more as soon as the clock of the database was set back by an hour', async () => {
    let made = 0;
    const { read } = processThat(async () => ++made);
    await read();
    await asOwner(
      databaseUrl,
      `UPDATE measurement SET measured_at = measured_at + interval '1 hour', due_at = due_at + interval '1 hour'
       WHERE name = 'webhooks'`,
    );
    for (let reads = 0; reads < 3; reads++) assert.equal((await read())[1], 'things{of="all"} 2');
  });

  it('waits as long as it was kept if it failed after the clock of the database was set back', async () => {
    const take = () => takeMeasurement(orm, 'webhooks', { leaseMs: 60_000, longestMs: 900_000 });
    await processThat(async () => 1).read();
    await asOwner(
      databaseUrl,
      `UPDATE measurement SET measured_at = now() + interval '1 hour', due_at = now() + interval '1 hour'
       WHERE name = 'webhooks'`,
    );
    assert.equal((await take()).isTaken, true);
    await keepMeasurement(orm, { name: 'webhooks', forMs: 900_000 });
    assert.equal((await take()).isTaken, false);
  });

  it('delays nobody while it takes long, and the previous values are shown', async () => {
    const { promise, resolve } = Promise.withResolvers<number>();
    const first = processThat(async () => 1);
    await first.read();
    await asOwner(databaseUrl, `UPDATE measurement SET due_at = '-infinity'`);
    const slow = processThat(() => promise);
    assert.equal((await slow.read())[1], 'things{of="all"} 1');
    resolve(2);
    await until('it is made', async () => (await slow.read())[1] === 'things{of="all"} 2');
  });

  it('leaves its gauges out and logs why if it fails, until it works again', async () => {
    let works = false;
    const { read, logged } = processThat(async () => {
      if (!works) throw new Error('nothing to measure with');
      return 7;
    });
    assert.deepEqual(await read(), []);
    assert.match(logged.join(), /nothing to measure with/);
    works = true;
    await asOwner(databaseUrl, `UPDATE measurement SET due_at = '-infinity'`);
    assert.equal((await read())[1], 'things{of="all"} 7');
  });
});

describe('a scrape while a table is locked', () => {
  it('shows what is measured from other tables, and the measurement that waits holds one connection', async () => {
    const databaseUrl = await createTestDatabase();
    const orm = await openOrm({ databaseUrl, poolSize: 8, shares: { accounts: 2, eachAccount: 1 } });
    const locker = await connectTo(ownerUrlOf(databaseUrl));
    try {
      const registry = new Registry();
      const metrics = createDatabaseMetrics({
        orm,
        tronNetwork: null,
        logger: pino({ level: 'silent' }),
        issuanceDeadlineMs: 60_000,
        topUpDeadlineMs: 60_000,
        withdrawalDeadlineMs: 60_000,
        taskQueuePrefix: '',
        cardNetwork: 'none',
      });
      for (const metric of metrics) registry.registerMetric(metric);
      await locker.query('BEGIN; LOCK TABLE card IN ACCESS EXCLUSIVE MODE');
      const scrape = registry.metrics();
      await until('the measurement waits for the lock', async () => (await lockWaits(databaseUrl)) > 0);
      const shown = await scrape;
      assert.match(shown, /^webhook_events_waiting\{/m);
      assert.match(shown, /^deposits_waiting\{/m);
      assert.match(shown, /^network_inbox_waiting /m);
      assert.doesNotMatch(shown, /^attention_items\{/m);
      assert.ok((await lockWaits(databaseUrl)) <= 1, 'one connection at most waits for the lock');
      await locker.query('ROLLBACK');
    } finally {
      await locker.end();
      await orm.close();
    }
  });
});

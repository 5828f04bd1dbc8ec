import assert from 'node:assert/strict';
import pg from 'pg';
import { seedDeposit, TEST_TRON } from '../support/deposits/seed-deposits.ts';
import { readMetrics } from '../support/metrics.ts';
import { asOwner, ownerUrlOf } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import { startTestStack, type TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

describe("the API's report on deposits", () => {
  let stack: TestStack;
  before(async () => {
    stack = await startTestStack({ tron: TEST_TRON }, { worker: false });
  });
  after(() => stack.stop());

  const get = (path: string, { config } = stack) => fetch(`http://${config.host}:${config.port}${path}`);
  async function samples(of = stack): Promise<Record<string, number>> {
    const text = await readMetrics(of);
    const found = text.matchAll(/^(deposit\w*)\{(.*)\} (\S+)$/gm);
    return Object.fromEntries(
      [...found].map(([, name, labels, value]) => [`${name} ${labels}`, Number(value)]),
    );
  }
  const readiness = async (of = stack) =>
    (await (await get('/readyz', of)).json()) as {
      status: string;
      workers: Record<string, number>;
      scan: { waits_for: string | null; lag_seconds: number; lag_blocks: number | null } | null;
    };
  /** Once what was computed within the last second is forgotten. */
  const scanOf = (waitsFor: string | null) =>
    until(`the scan waits for ${waitsFor}`, async () => {
      const { status, scan } = await readiness();
      return scan?.waits_for === waitsFor && { status, scan };
    });

  it('says that the scan waits for the first deposit and then for a node, while the process stays ready', async () => {
    const first = await scanOf('first_deposit');
    const nowhere = { network: 'private', height: null, lag_blocks: 0, lag_seconds: 0, node: null };
    assert.deepEqual(first, { status: 'ready', scan: { ...nowhere, waits_for: 'first_deposit' } });

    const id = await seedDeposit(stack, (await stack.createPartner()).id);
    await asOwner(stack, `UPDATE deposit SET created_at = created_at - interval '10 minutes' WHERE id = $1`, [
      id,
    ]);
    const { status, scan } = await scanOf('node');
    assert.deepEqual([status, scan.lag_blocks], ['ready', null]);
    assert.ok(scan.lag_seconds >= 540 && scan.lag_seconds < 700, String(scan.lag_seconds));
  });

  it('says how far the chain has been read, by which node, and how the others are', async () => {
    const nodes = [
      { name: 'one:8090', state: 'in_use', problem: null, since: new Date() },
      { name: 'two:8090', state: 'failing', problem: 'ECONNREFUSED', since: new Date() },
    ];
    await asOwner(
      stack,
      `INSERT INTO chain_scan (network, block_number, block_hash, block_time, solid_block_number, node, nodes)
       VALUES ('private', 1000, 'aa', now() - interval '3 minutes', 1040, 'one:8090', $1),
         ('nile', 5, 'bb', now() - interval '1 year', 900, 'old', '[]')`,
      [JSON.stringify(nodes)],
    );
    const { status, scan } = await scanOf(null);
    const { lag_seconds, ...rest } = scan;
    assert.deepEqual(
      [status, rest],
      ['ready', { network: 'private', waits_for: null, height: 1_000, lag_blocks: 40, node: 'one:8090' }],
    );
    assert.ok(lag_seconds >= 120 && lag_seconds < 240, String(lag_seconds));

    const metrics = await until('it is read', async () => {
      const read = await samples();
      return read['deposit_scan_height network="private"'] === 1_000 && read;
    });
    const lagSeconds = metrics['deposit_scan_lag_seconds network="private"'] ?? 0;
    assert.ok(lagSeconds >= 120 && lagSeconds < 240, String(lagSeconds));
    const ofScan = Object.entries(metrics).filter(([name]) => /scan_(?!lag_seconds)|node/.test(name));
    assert.deepEqual(Object.fromEntries(ofScan), {
      'deposit_scan_lag_blocks network="private"': 40,
      'deposit_scan_height network="private"': 1_000,
      'deposit_scan_solid_height network="private"': 1_040,
      'deposit_node_state node="one:8090",state="in_use"': 1,
      'deposit_node_state node="two:8090",state="failing"': 1,
    });
  });

  it('counts the deposits that wait, by reason', async () => {
    const { id: partnerId } = await stack.createPartner();
    const payment = { valueMicroUsdt: 1n, blockNumber: 1, blockTime: new Date() };
    const seed = (deposit: Parameters<typeof seedDeposit>[2]) => seedDeposit(stack, partnerId, deposit);
    await seed({ status: 'awaiting_payment' });
    await seed({
      status: 'awaiting_payment',
      payments: [
        { ...payment, status: 'found' },
        { ...payment, status: 'found' },
      ],
    });
    for (const status of ['confirming', 'confirming', 'expired', 'returned'] as const) await seed({ status });
    await seed({ status: 'needs_review', payments: [{ ...payment, status: 'in_review', reason: 'late' }] });
    const metrics = await until('they are counted', async () => {
      const read = await samples();
      return read['deposits_waiting for="review"'] === 1 && read;
    });
    const waiting = Object.entries(metrics).filter(([name]) => name.startsWith('deposits_waiting'));
    assert.deepEqual(Object.fromEntries(waiting), {
      // One is of the first test.
      'deposits_waiting for="payment"': 3,
      'deposits_waiting for="confirmation"': 2,
      'deposits_waiting for="credit"': 2,
      'deposits_waiting for="review"': 1,
    });
  });

  it('leaves out only these metrics if nobody could measure them for minutes', async () => {
    const holder = new pg.Client(ownerUrlOf(stack.config.databaseUrl));
    await holder.connect();
    await holder.query('BEGIN');
    await holder.query('LOCK TABLE chain_scan');
    await asOwner(
      stack,
      `UPDATE measurement SET measured_at = now() - interval '6 minutes' WHERE name = 'deposits'`,
    );
    try {
      const text = await until('they can not be read', async () => {
        const text = await readMetrics(stack);
        return !/^deposit\w*\{/m.test(text) && text;
      });
      assert.match(text, /^webhook_events_waiting\{for="relay"\} 0$/m);
      assert.match(text, /^process_cpu_seconds_total /m);
      const { status, scan } = await until('the scan can not be read', async () => {
        const body = await readiness();
        return body.scan === null && body;
      });
      assert.deepEqual([status, scan], ['ready', null]);
    } finally {
      await holder.end();
    }
    await scanOf(null);
  });

  it('has nothing about a scan if TRON_NETWORK is not set, but still what waits', async () => {
    const without = await sharedStack();
    const { id } = await without.createPartner();
    await seedDeposit(without, id, {
      status: 'needs_review',
      payments: [
        { valueMicroUsdt: 1n, blockNumber: 1, blockTime: new Date(), status: 'in_review', reason: 'late' },
      ],
    });
    assert.equal((await readiness(without)).scan, null);
    const metrics = await until('it is measured', async () => {
      const read = await samples(without);
      return (read['deposits_waiting for="review"'] ?? 0) > 0 && read;
    });
    assert.deepEqual(
      Object.keys(metrics).filter((name) => !name.startsWith('deposits_waiting')),
      [],
    );
  });

  it("includes the deposits' task queue among those that workers poll", async () => {
    const { workers } = await readiness();
    const queues = ['cards', 'webhooks', 'deposits'].map((name) => `${stack.config.taskQueuePrefix}${name}`);
    assert.deepEqual(Object.keys(workers), queues);
  });
});

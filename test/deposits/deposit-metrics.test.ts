import assert from 'node:assert/strict';
import { seedDeposit, TEST_TRON } from '../support/deposits/seed-deposits.ts';
import { readMetrics } from '../support/metrics.ts';
import { asOwner, connectTo, ownerUrlOf } from '../support/postgres.ts';
import { startTestStack, type TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

describe("the API's report on deposits", () => {
  let stack: TestStack;
  before(async () => {
    stack = await startTestStack({ tron: TEST_TRON }, { worker: false });
  });
  after(() => stack.stop());

  async function samples(): Promise<Record<string, number>> {
    const found = (await readMetrics(stack)).matchAll(/^(deposit\w*)\{(.*)\} (\S+)$/gm);
    return Object.fromEntries(
      [...found].map(([, name, labels, value]) => [`${name} ${labels}`, Number(value)]),
    );
  }
  const readiness = async () => {
    const { host, port } = stack.config;
    return (await (await fetch(`http://${host}:${port}/readyz`)).json()) as {
      status: string;
      workers: Record<string, number>;
      scan: { waits_for: string | null; lag_seconds: number; lag_blocks: number | null } | null;
    };
  };
  /** Once what was computed within the last second is forgotten. The process stays ready whatever it is. */
  const scanOf = (waitsFor: string | null) =>
    until(`the scan waits for ${waitsFor}`, async () => {
      const { status, scan } = await readiness();
      assert.equal(status, 'ready');
      return scan?.waits_for === waitsFor && scan;
    });
  const isAbout = (minutes: number, seconds: number) =>
    assert.ok(seconds >= 60 * (minutes - 1) && seconds < 60 * (minutes + 1), String(seconds));

  it('says that the scan waits for the first deposit and then for a node, and which queues workers poll', async () => {
    const nowhere = { network: 'private', height: null, lag_blocks: 0, lag_seconds: 0, node: null };
    assert.deepEqual(await scanOf('first_deposit'), { ...nowhere, waits_for: 'first_deposit' });
    const queues = ['cards', 'webhooks', 'deposits'].map((name) => `${stack.config.taskQueuePrefix}${name}`);
    assert.deepEqual(Object.keys((await readiness()).workers), queues);

    const id = await seedDeposit(stack, (await stack.createPartner()).id);
    await asOwner(stack, `UPDATE deposit SET created_at = created_at - interval '10 minutes' WHERE id = $1`, [
      id,
    ]);
    const { lag_blocks, lag_seconds } = await scanOf('node');
    assert.equal(lag_blocks, null);
    isAbout(10, lag_seconds);
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
    const { lag_seconds, ...scan } = await scanOf(null);
    isAbout(3, lag_seconds);
    const read = { network: 'private', waits_for: null, height: 1_000, lag_blocks: 40, node: 'one:8090' };
    assert.deepEqual(scan, read);

    const metrics = await until('it is read', async () => {
      const read = await samples();
      return read['deposit_scan_height network="private"'] === 1_000 && read;
    });
    const { 'deposit_scan_lag_seconds network="private"': lag = 0, ...others } = metrics;
    isAbout(3, lag);
    const ofScan = Object.entries(others).filter(([name]) => !name.startsWith('deposits_waiting'));
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
    const found = { ...payment, status: 'found' } as const;
    await seedDeposit(stack, partnerId, { payments: [found, found] });
    for (const status of ['awaiting_payment', 'confirming', 'confirming', 'expired', 'returned'] as const)
      await seedDeposit(stack, partnerId, { status });
    await seedDeposit(stack, partnerId, {
      ...{ status: 'needs_review', payments: [{ ...payment, status: 'in_review', reason: 'late' }] },
    });
    const metrics = await until('they are counted', async () => {
      const read = await samples();
      return read['deposits_waiting for="review"'] === 1 && read;
    });
    const waiting = ['payment', 'confirmation', 'credit', 'review'].map(
      (what) => metrics[`deposits_waiting for="${what}"`],
    );
    // One that waits for a payment is of the first test.
    assert.deepEqual(waiting, [3, 2, 2, 1]);
  });

  it('leaves out only these metrics if nobody could measure them for minutes', async () => {
    const holder = await connectTo(ownerUrlOf(stack.config.databaseUrl));
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
      const { status } = await until('the scan can not be read', async () => {
        const body = await readiness();
        return body.scan === null && body;
      });
      assert.equal(status, 'ready');
    } finally {
      await holder.end();
    }
    await scanOf(null);
  });
});

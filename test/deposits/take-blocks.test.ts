import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import {
  beginScan,
  isAnyAwaited,
  markConfirming,
  readCursor,
  readFirstDepositTime,
  recordChainState,
  rescanFrom,
} from '../../deposits/chain-scan.ts';
import { CursorMoved, type FoundPayment, findOwners, takeBlocks } from '../../deposits/take-blocks.ts';
import { query } from '../../platform/db/sql.ts';
import { openCommands, type TestCommands } from '../support/commands/open-commands.ts';
import { addressHashOf, paymentFor, readDeposits, seedDeposits } from '../support/deposits/seed-deposits.ts';
import { countStatements } from '../support/statements.ts';

const NETWORK = 'private';
const firstWords = (text: string) =>
  text
    .trim()
    .replaceAll('"', '')
    .replace(/^(update|with)/, (word) => word.toUpperCase())
    .split(/\s+/)
    .slice(0, 2)
    .join(' ');

const START = { number: 100, hash: hashOf(100), time: new Date() };

function hashOf(blockNumber: number): string {
  return blockNumber.toString(16).padStart(64, '0');
}

describe('takeBlocks', () => {
  let commands: TestCommands;
  let partnerId: string;
  beforeEach(async () => {
    commands = await openCommands();
    partnerId = await commands.createFundedPartner(100);
    await beginScan(commands.context.orm, NETWORK, START);
  });
  afterEach(() => commands.close());

  const em = () => commands.context.orm.em.fork();
  const cursor = async () => (await readCursor(em(), NETWORK))?.number;

  /** Takes the blocks from `from` up to `to`, if the one before them has this hash. */
  const take = (
    from: number,
    to: number,
    payments: FoundPayment[] = [],
    hash: string | null = hashOf(from - 1),
  ) =>
    takeBlocks(commands.context.orm, {
      network: NETWORK,
      after: { number: from - 1, hash },
      last: { number: to, hash: hashOf(to), time: new Date() },
      payments,
      unconfirmed: [],
    });

  const statusesOf = async (ids: string[]) => {
    const deposits = await readDeposits(commands.owner);
    return ids.map((id) => deposits.get(id)?.status);
  };
  const statusOf = async (id: string) => (await statusesOf([id]))[0];

  it('records each payment once with its place in the chain, however often it is found', async () => {
    const [one = '', two = ''] = await seedDeposits(commands.owner, { partnerId, count: 2 });
    const txHash = randomBytes(32).toString('hex');
    const payments = [
      paymentFor(one, partnerId, { txHash, logIndex: 0 }),
      paymentFor(one, partnerId, { txHash, logIndex: 3, valueMicroUsdt: 2n ** 200n }),
      paymentFor(two, partnerId, { txHash, logIndex: 7 }),
    ];
    assert.equal((await take(101, 103, payments)).found, 3);
    assert.equal(await cursor(), 103);
    const { rows } = await commands.owner.query(
      `SELECT deposit_id, log_index, value_micro_usdt, block_number, status, review_reason
       FROM deposit_payment ORDER BY log_index`,
    );
    const common = { block_number: '101', status: 'found', review_reason: null };
    assert.deepEqual(rows, [
      { deposit_id: one, log_index: 0, value_micro_usdt: '25000000', ...common },
      { deposit_id: one, log_index: 3, value_micro_usdt: String(2n ** 200n), ...common },
      { deposit_id: two, log_index: 7, value_micro_usdt: '25000000', ...common },
    ]);
    await rescanFrom(commands.operator, { network: NETWORK, fromBlock: 101 });
    assert.equal((await take(101, 103, payments, null)).found, 0);
    assert.equal((await readDeposits(commands.owner)).get(one)?.payments.length, 2);
  });

  it('changes nothing if the scan is elsewhere, and lets one of two scans win', async () => {
    const [id = ''] = await seedDeposits(commands.owner, { partnerId });
    await assert.rejects(take(102, 103, [paymentFor(id, partnerId)]), CursorMoved);
    await assert.rejects(take(101, 101, [paymentFor(id, partnerId)], hashOf(999)), CursorMoved);
    assert.deepEqual((await readDeposits(commands.owner)).get(id)?.payments, []);

    const payment = paymentFor(id, partnerId);
    const ends = await Promise.allSettled([1, 2, 3, 4].map(() => take(101, 101, [payment])));
    assert.equal(ends.filter(({ status }) => status === 'fulfilled').length, 1);
    for (const end of ends) if (end.status === 'rejected') assert.ok(end.reason instanceof CursorMoved);
    assert.deepEqual((await readDeposits(commands.owner)).get(id)?.payments, ['found']);
  });

  it('keeps nothing of blocks whose process dies before the commit', async () => {
    const [id = ''] = await seedDeposits(commands.owner, { partnerId });
    {
      await using lock = await commands.connect();
      // What writes the payment waits: the cursor has been moved by then.
      await lock.query('BEGIN; LOCK TABLE deposit IN ACCESS EXCLUSIVE MODE');
      const taking = take(101, 101, [paymentFor(id, partnerId)]);
      taking.catch(() => {});
      for (let waiting = 0; waiting === 0; ) {
        const { rows } = await commands.owner.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
           WHERE datname = current_database() AND wait_event_type = 'Lock' AND application_name = 'commands-test'`,
        );
        waiting = rows.length;
      }
      await assert.rejects(taking);
    }
    assert.equal(await cursor(), 100);
    assert.deepEqual((await readDeposits(commands.owner)).get(id)?.payments, []);
    await take(101, 101, [paymentFor(id, partnerId)]);
    assert.deepEqual((await readDeposits(commands.owner)).get(id)?.payments, ['found']);
  });

  it('shows payments seen ahead, and withdraws them if their block brings nothing', async () => {
    const ids = await seedDeposits(commands.owner, { partnerId, count: 4 });
    const [kept = '', gone = '', passed = '', claimed = ''] = ids;
    const seen = new Map([
      [addressHashOf(kept), 102],
      [addressHashOf(gone), 101],
      [addressHashOf(passed), 100],
      // A node can say that it has any block.
      [addressHashOf(claimed), 1_000_000_000],
      ['ff'.repeat(20), 102],
    ]);
    assert.equal(await isAnyAwaited(em(), NETWORK), true);
    assert.equal(await markConfirming(commands.context.orm, NETWORK, seen), 2);
    assert.equal(await markConfirming(commands.context.orm, NETWORK, seen), 0);
    const awaited = ['awaiting_payment', 'awaiting_payment'];
    assert.deepEqual(await statusesOf(ids), ['confirming', 'confirming', ...awaited]);
    assert.equal((await take(101, 101)).awaitingAgain, 1);
    assert.deepEqual(await statusesOf(ids), ['confirming', 'awaiting_payment', ...awaited]);
    const payment = paymentFor(kept, partnerId, { blockNumber: 102 });
    assert.equal((await take(102, 102, [payment])).awaitingAgain, 0);
    assert.equal(await statusOf(kept), 'confirming');
  });

  it('does not wait for a deposit or an account that another transaction holds', async () => {
    const ids = await seedDeposits(commands.owner, { partnerId, count: 2 });
    const [paid = '', seen = ''] = ids;
    await markConfirming(commands.context.orm, NETWORK, new Map([[addressHashOf(seen), 101]]));
    {
      await using holder = await commands.connect();
      await holder.query('BEGIN');
      await holder.query('SELECT FROM deposit WHERE id = ANY ($1) FOR NO KEY UPDATE', [ids]);
      await holder.query('SELECT FROM ledger.account FOR UPDATE');
      const taken = await take(101, 101, [paymentFor(paid, partnerId)]);
      assert.deepEqual(taken, { found: 1, confirming: 0, awaitingAgain: 0 });
      await holder.query('ROLLBACK');
    }
    assert.deepEqual(await statusesOf(ids), ['awaiting_payment', 'confirming']);
    assert.equal((await take(102, 102)).awaitingAgain, 1);
  });

  it('records 5,000 payments with as many statements as one', async () => {
    const paid = await seedDeposits(commands.owner, { partnerId, count: 5_000 });
    const owners = await findOwners(em(), NETWORK, [...paid.map(addressHashOf), 'ee'.repeat(20)]);
    assert.equal(owners.size, 5_000);
    assert.deepEqual(owners.get(addressHashOf(paid[7] ?? '')), {
      depositId: paid[7],
      partnerId,
      mode: 'live',
    });
    const payments = paid.map((id, index) => paymentFor(id, partnerId, { transactionIndex: index }));
    const statements = countStatements(commands.operatorUrl);
    try {
      assert.deepEqual(await take(101, 101, payments), {
        ...{ found: 5_000, confirming: 0, awaitingAgain: 0 },
      });
    } finally {
      statements.stop();
    }
    assert.deepEqual(statements.texts.map(firstWords), [
      ...['begin', 'UPDATE chain_scan', 'delete from', 'WITH recorded', 'WITH due', 'commit'],
    ]);
  });

  it('begins once, after the block that is given first, and reports nothing before that', async () => {
    await commands.owner.query('DELETE FROM chain_scan');
    assert.equal(await readCursor(em(), NETWORK), null);
    assert.equal(await readFirstDepositTime(em(), NETWORK), null);
    await seedDeposits(commands.owner, { partnerId, createdAt: "'2026-01-02T03:04:05Z'" });
    await seedDeposits(commands.owner, { partnerId });
    assert.equal((await readFirstDepositTime(em(), NETWORK))?.toISOString(), '2026-01-02T03:04:05.000Z');
    await recordChainState(commands.context.orm, NETWORK, { solidBlockNumber: 5, node: null, nodes: [] });
    await beginScan(commands.context.orm, NETWORK, START);
    await beginScan(commands.context.orm, NETWORK, { number: 7, hash: null, time: null });
    assert.deepEqual(await readCursor(em(), NETWORK), START);
  });

  it('records the state of the chain and its nodes beside the cursor', async () => {
    const nodes = [{ name: 'n:1', state: 'in_use' as const, problem: null, since: new Date().toISOString() }];
    await recordChainState(commands.context.orm, NETWORK, { solidBlockNumber: 120, node: 'n:1', nodes });
    await recordChainState(commands.context.orm, NETWORK, { solidBlockNumber: null, node: null, nodes });
    const [row] = await query<Record<string, unknown>>(
      em(),
      'SELECT block_number, solid_block_number, node, nodes, checked_at IS NOT NULL AS checked FROM chain_scan',
    );
    assert.deepEqual(row, {
      block_number: '100',
      solid_block_number: '120',
      node: null,
      nodes,
      checked: true,
    });
  });
});

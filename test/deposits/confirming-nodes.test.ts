import assert from 'node:assert/strict';
import { readWaitingDeposits } from '../../deposits/attention.ts';
import { rescanFrom } from '../../deposits/chain-scan.ts';
import { type Draft, tokenTransfer } from '../../dev/tron/drafts.ts';
import type { FakeNode } from '../../dev/tron/fake-node.ts';
import { query } from '../../platform/db/sql.ts';
import { openAddress, readLeft } from '../support/deposits/deposit-stack.ts';
import {
  type ScannedChain,
  startAddressStack,
  startScannedChain,
} from '../support/deposits/scanned-chain.ts';
import { assertLedgerClean } from '../support/money.ts';
import { asOwner } from '../support/postgres.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

const CENTS = 2_500;
const pays = (to: string): Draft => tokenTransfer({ to, valueMicroUsdt: 25_000_000n });
const hostOf = (node: FakeNode | undefined) => new URL(node?.url ?? '').host;

describe('payments that two nodes have to show', () => {
  let stack: TestStack;
  let scanned: ScannedChain;
  let partner: TestPartner;
  before(async () => {
    stack = await startAddressStack();
  });
  afterEach(async () => {
    await assertLedgerClean(stack);
    await scanned.stop();
  });
  after(() => stack.stop());

  const start = async (count: number) => {
    scanned = await startScannedChain(stack, { names: ['one', 'two', 'three'].slice(0, count) });
    partner = await stack.createPartner();
  };
  /** A deposit whose payment is in a solid block. */
  const paid = async () => {
    const deposit = await openAddress(partner, CENTS);
    const block = scanned.chain.mine([pays(deposit.address)]);
    scanned.chain.solidify();
    return { ...deposit, block };
  };
  const left = ({ id }: { id: string }) => readLeft(scanned, partner, id);
  const assertStatus = async (deposit: { id: string }, status: string) =>
    assert.equal((await left(deposit)).status, status);
  const unconfirmed = async () => {
    const rows = await query<{ deposit_id: string }>(
      stack.orm.em.fork(),
      'SELECT deposit_id FROM unconfirmed_payment',
    );
    return rows.map(({ deposit_id }) => deposit_id);
  };
  /** What is in `attention list` ten minutes later. */
  const attention = async () => {
    const { databaseUrl, taskQueuePrefix } = stack.config;
    await asOwner(
      databaseUrl,
      `UPDATE unconfirmed_payment
       SET seen_at = seen_at - interval '11 minutes', asked_at = asked_at - interval '11 minutes'`,
    );
    await asOwner(
      databaseUrl,
      `UPDATE deposit SET changed_at = changed_at - interval '11 minutes' WHERE status = 'confirming'`,
    );
    const items = await readWaitingDeposits(stack.orm, taskQueuePrefix);
    return items.filter(({ kind }) => kind === 'deposit_confirmation');
  };
  const reasonOf = async ({ id }: { id: string }) =>
    (await attention()).find((item) => item.id === id)?.reason ?? '';

  it('are neither invented, hidden nor sent to review by one of three nodes', async () => {
    await start(3);
    const { chain, nodes, look } = scanned;
    const [hidden, forged] = [await openAddress(partner, CENTS), await openAddress(partner, CENTS)];
    const block = chain.mine([pays(hidden.address)]);
    nodes[0]?.view.hideLogs(block.transactions[0]?.id ?? '');
    nodes[0]?.view.forge(chain.mine().number, pays(forged.address));
    chain.solidify();
    await look();
    assert.deepEqual(await unconfirmed(), []);
    chain.solidify();
    await look();
    await assertStatus(hidden, 'confirmed');
    await assertStatus(forged, 'awaiting_payment');
    assert.deepEqual((await left(forged)).payments, []);
    assert.deepEqual((await left(hidden)).payments, ['credited']);
    assert.equal((await left(hidden)).balanceCents, CENTS);
    const denied = 'a TRON node showed a payment that enough others deny; it is not credited';
    assert.ok(scanned.log.some(({ msg }) => msg === denied));
  });

  it('wait if one of two nodes hides or invents them, are shown with what each node says, and then settle', async () => {
    await start(2);
    const { chain, nodes, look } = scanned;
    const [hidden, forged] = [await openAddress(partner, CENTS), await openAddress(partner, CENTS)];
    const block = chain.mine([pays(hidden.address)]);
    nodes[1]?.view.hideLogs(block.transactions[0]?.id ?? '');
    nodes[1]?.view.forge(chain.mine().number, pays(forged.address));
    const fine = await paid();
    await look();
    await assertStatus(fine, 'confirmed');
    assert.deepEqual((await unconfirmed()).toSorted(), [hidden.id, forged.id].toSorted());
    for (const deposit of [hidden, forged]) {
      await assertStatus(deposit, 'confirming');
      assert.deepEqual((await left(deposit)).payments, []);
    }
    const [one, two] = [hostOf(nodes[0]), hostOf(nodes[1])];
    assert.match(await reasonOf(hidden), new RegExp(`${one}: shows it; ${two}: denies it`));
    assert.match(await reasonOf(forged), new RegExp(`${one}: denies it; ${two}: shows it`));
    nodes[1]?.view.reform();
    await look();
    await assertStatus(hidden, 'confirmed');
    assert.deepEqual(await unconfirmed(), []);
    chain.solidify();
    await look();
    await assertStatus(forged, 'awaiting_payment');
    assert.equal((await left(hidden)).balanceCents, 2 * CENTS);
  });

  it('are asked about less often the longer they wait, and at least every ten minutes', async () => {
    await start(2);
    const { chain, nodes, look } = scanned;
    const { address } = await openAddress(partner, CENTS);
    nodes[1]?.view.forge(chain.mine().number, pays(address));
    chain.solidify();
    await look();
    const calls = () => nodes[0]?.calls.get('/walletsolidity/getblockbynum') ?? 0;
    const minutesSince: [seen: number, asked: number, isDue: boolean][] = [
      [10, 3, true],
      [10, 1, false],
      [600, 11, true],
      [600, 9, false],
      // The database's clock has been set back.
      [-60, -60, true],
    ];
    for (const [seen, asked, isDue] of minutesSince) {
      await asOwner(
        stack.config.databaseUrl,
        `UPDATE unconfirmed_payment
         SET seen_at = now() - interval '${seen} minutes', asked_at = now() - interval '${asked} minutes'`,
      );
      const before = calls();
      await look();
      assert.equal(calls() - before, isDue ? 1 : 0, `seen ${seen} and asked ${asked} minutes ago`);
    }
  });

  it('are credited although one of three nodes does not answer within a round of the scan', async () => {
    await start(3);
    const { chain, nodes, look, round } = scanned;
    const [, two, three] = nodes as [FakeNode, FakeNode, FakeNode];
    const { address } = await openAddress(partner, CENTS);
    two.view.hideLogs(chain.mine([pays(address)]).transactions[0]?.id ?? '');
    three.faults.add({ fault: 'disconnect' });
    chain.solidify();
    await look();
    assert.equal((await unconfirmed()).length, 1);
    two.view.reform();
    three.faults.clear();
    three.faults.add({ fault: 'hang', request: 'gettransactioninfobyblocknum' });
    const [over, stopping] = [new AbortController(), new AbortController()];
    const calls = () => two.calls.get('/walletsolidity/getblockbynum') ?? 0;
    const before = calls();
    const ended = round(over.signal, stopping.signal);
    await until('the nodes are asked', () => calls() > before);
    over.abort();
    await ended;
    await three.stop();
    await until('the payment counts', async () => (await unconfirmed()).length === 0);
    stopping.abort();
  });

  it('are forgotten with a wrong chain that two of three nodes were on, once a rescan has left it', async () => {
    scanned = await startScannedChain(stack, { names: ['wrong', 'wrong', 'right'] });
    partner = await stack.createPartner();
    const { nodes, look } = scanned;
    const deposit = await paid();
    const { number, transactions } = deposit.block;
    for (const node of nodes.slice(0, 2)) node.view.forksAt = number;
    nodes[1]?.view.hideLogs(transactions[0]?.id ?? '');
    await look();
    assert.deepEqual(await unconfirmed(), [deposit.id]);
    for (const node of nodes) node.view.reform();
    await rescanFrom(stack.operator, { network: 'private', fromBlock: number });
    await look();
    await assertStatus(deposit, 'confirmed');
    assert.deepEqual(await unconfirmed(), []);
  });

  it('stay confirming while one of two nodes is dead, and are credited once it is back', async () => {
    await start(2);
    const { nodes, look } = scanned;
    await paid();
    await look();
    const revive = nodes[1]?.faults.add({ fault: 'disconnect' });
    const waiting = await paid();
    await look();
    await assertStatus(waiting, 'confirming');
    const item = (await attention()).find(({ id }) => id === waiting.id);
    assert.ok(item);
    assert.ok(item.reason.includes(`${hostOf(nodes[0])}: block `), item.reason);
    assert.ok(item.reason.includes(`${hostOf(nodes[1])}: disconnected`), item.reason);
    assert.equal(item.command, `npm run operator -- deposit show ${waiting.id}`);
    revive?.();
    await look();
    await assertStatus(waiting, 'confirmed');
  });
});

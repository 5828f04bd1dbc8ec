import assert from 'node:assert/strict';
import { readWaitingDeposits } from '../../../attention/deposits.ts';
import { query } from '../../../db/sql.ts';
import { type Draft, tokenTransfer } from '../../../dev/tron/drafts.ts';
import type { FakeNode } from '../../../dev/tron/fake-node.ts';
import {
  type DepositStack,
  openAddress,
  readLeft,
  startDepositStack,
  untilDeposit,
  untilScanned,
} from '../../support/deposits/deposit-stack.ts';
import { asOwner } from '../../support/postgres.ts';
import type { TestPartner } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

const CENTS = 2_500;
const pays = (to: string): Draft => tokenTransfer({ to, valueMicroUsdt: 25_000_000n });
const hostOf = (node: FakeNode | undefined) => new URL(node?.url ?? '').host;

describe('payments that two nodes have to show', () => {
  let deposits: DepositStack;
  let partner: TestPartner;
  afterEach(() => deposits.stop());

  const start = async (count: number) => {
    const names = ['one', 'two', 'three'].slice(0, count);
    deposits = await startDepositStack({}, { nodes: names });
    partner = await deposits.stack.createPartner();
  };
  /** A deposit whose payment is in a solid block. */
  const paid = async () => {
    const deposit = await openAddress(partner, CENTS);
    const block = deposits.chain.mine([pays(deposit.address)]);
    deposits.chain.solidify();
    return { ...deposit, block };
  };
  const left = ({ id }: { id: string }) => readLeft(deposits, partner, id);
  const unconfirmed = () =>
    query<{ deposit_id: string }>(deposits.stack.orm.em.fork(), 'SELECT deposit_id FROM unconfirmed_payment');
  const untilUnconfirmed = ({ id }: { id: string }) =>
    until('it is waiting to be confirmed', async () =>
      (await unconfirmed()).some(({ deposit_id }) => deposit_id === id),
    );
  /** What is in `attention list` ten minutes later. */
  const attention = async () => {
    const { databaseUrl, taskQueuePrefix } = deposits.stack.config;
    await asOwner(databaseUrl, `UPDATE unconfirmed_payment SET seen_at = seen_at - interval '11 minutes'`);
    await asOwner(
      databaseUrl,
      `UPDATE deposit SET changed_at = changed_at - interval '11 minutes' WHERE status = 'confirming'`,
    );
    const items = await readWaitingDeposits(deposits.stack.orm, taskQueuePrefix);
    return items.filter(({ kind }) => kind === 'deposit_confirmation');
  };

  it('are neither invented, hidden nor sent to review by one of three nodes', async () => {
    await start(3);
    const { chain, nodes } = deposits;
    const [hidden, forged] = [await openAddress(partner, CENTS), await openAddress(partner, CENTS)];
    const block = chain.mine([pays(hidden.address)]);
    nodes[0]?.view.hideLogs(block.transactions[0]?.id ?? '');
    nodes[0]?.view.forge(chain.mine().number, pays(forged.address));
    chain.solidify();
    await untilDeposit(partner, hidden.id, 'confirmed');
    await untilScanned(deposits, chain.solidNumber());
    await until('the nodes were asked', async () => (await unconfirmed()).length === 0);
    chain.solidify();
    await untilDeposit(partner, forged.id, 'awaiting_payment');
    assert.deepEqual((await left(forged)).payments, []);
    assert.deepEqual((await left(hidden)).payments, ['credited']);
    assert.equal((await left(hidden)).balanceCents, CENTS);
    assert.match(deposits.stack.logLines.join('\n'), /a TRON node showed a payment that enough others deny/);
  });

  it('wait if one of two nodes hides or invents them, are shown with what each node says, and then settle', async () => {
    await start(2);
    const { chain, nodes } = deposits;
    const [hidden, forged] = [await openAddress(partner, CENTS), await openAddress(partner, CENTS)];
    const block = chain.mine([pays(hidden.address)]);
    nodes[1]?.view.hideLogs(block.transactions[0]?.id ?? '');
    nodes[1]?.view.forge(chain.mine().number, pays(forged.address));
    const fine = await paid();
    await untilDeposit(partner, fine.id, 'confirmed');
    for (const deposit of [hidden, forged]) {
      await untilUnconfirmed(deposit);
      await untilDeposit(partner, deposit.id, 'confirming');
      assert.deepEqual((await left(deposit)).payments, []);
    }
    const words = await until('both nodes were asked', async () => {
      const items = await attention();
      const reasonOf = (id: string) => items.find((item) => item.id === id)?.reason ?? '';
      const reasons = [reasonOf(hidden.id), reasonOf(forged.id)];
      return reasons.every((reason) => reason.includes('denies it')) ? reasons : undefined;
    });
    assert.match(words[0] ?? '', new RegExp(`${hostOf(nodes[0])}: shows it; ${hostOf(nodes[1])}: denies it`));
    assert.match(words[1] ?? '', new RegExp(`${hostOf(nodes[0])}: denies it; ${hostOf(nodes[1])}: shows it`));
    nodes[1]?.view.reform();
    await untilDeposit(partner, hidden.id, 'confirmed');
    await until('it is denied by both', async () => (await unconfirmed()).length === 0);
    chain.solidify();
    await untilDeposit(partner, forged.id, 'awaiting_payment');
    assert.equal((await left(hidden)).balanceCents, 2 * CENTS);
  });

  it('are not credited from a block that one node shows before it is solid, and that a fork replaces', async () => {
    await start(2);
    const { chain, nodes } = deposits;
    const lost = await openAddress(partner, CENTS);
    const [liar] = nodes;
    assert.ok(liar);
    liar.view.unsolidBlocks = 2;
    chain.mine([pays(lost.address)]);
    await untilDeposit(partner, lost.id, 'confirming');
    chain.fork(1);
    chain.solidify();
    const kept = await paid();
    await untilDeposit(partner, kept.id, 'confirmed');
    await untilDeposit(partner, lost.id, 'awaiting_payment');
    assert.equal((await left(kept)).balanceCents, CENTS);
  });

  it('are not credited from forged blocks that follow the last one and have right hashes', async () => {
    await start(2);
    const { chain, nodes } = deposits;
    const first = await paid();
    await untilDeposit(partner, first.id, 'confirmed');
    await untilScanned(deposits, chain.solidNumber());
    const forged = await openAddress(partner, CENTS);
    const [liar] = nodes;
    assert.ok(liar);
    const next = chain.solidNumber() + 1;
    liar.view.forge(next, pays(forged.address));
    liar.view.forksAt = next;
    const real = await paid();
    await untilDeposit(partner, real.id, 'confirming');
    await until('the nodes contradict each other', async () =>
      (await attention()).some(({ id, reason }) => id === real.id && reason.includes(`block ${next} is 0`)),
    );
    assert.deepEqual((await left(forged)).payments, []);
    liar.view.reform();
    await untilDeposit(partner, real.id, 'confirmed');
    await untilScanned(deposits, chain.solidNumber());
    assert.deepEqual((await left(forged)).payments, []);
    assert.equal((await left(real)).balanceCents, 2 * CENTS);
  });

  it('stay confirming while one of two nodes is dead, and are credited once it is back', async () => {
    await start(2);
    const { nodes } = deposits;
    const first = await paid();
    await untilDeposit(partner, first.id, 'confirmed');
    const revive = nodes[1]?.faults.add({ fault: 'disconnect' });
    const waiting = await paid();
    await untilDeposit(partner, waiting.id, 'confirming');
    const item = await until('it needs attention', async () =>
      (await attention()).find(({ id, reason }) => id === waiting.id && reason.includes('disconnected')),
    );
    assert.ok(item.reason.includes(`${hostOf(nodes[0])}: block `), item.reason);
    assert.ok(item.reason.includes(`${hostOf(nodes[1])}: disconnected`), item.reason);
    assert.equal(item.command, `npm run operator -- deposit show ${waiting.id}`);
    assert.equal((await left(waiting)).status, 'confirming');
    revive?.();
    await untilDeposit(partner, waiting.id, 'confirmed');
  });

  it('are credited though the two nodes are never up at the same time', async () => {
    await start(2);
    const { nodes } = deposits;
    const first = await paid();
    await untilDeposit(partner, first.id, 'confirmed');
    for (const [up, down] of [
      [0, 1],
      [1, 0],
    ] as const) {
      const revive = nodes[down]?.faults.add({ fault: 'disconnect' });
      const deposit = await paid();
      await until('one has shown its block', async () => {
        const [scan] = await query<{ says: string | null }>(
          deposits.stack.orm.em.fork(),
          `SELECT nodes->${up}->>'says' AS says FROM chain_scan`,
        );
        return scan?.says?.startsWith('block ');
      });
      const reviveOther = nodes[up]?.faults.add({ fault: 'disconnect' });
      revive?.();
      await untilDeposit(partner, deposit.id, 'confirmed');
      reviveOther?.();
    }
  });
});

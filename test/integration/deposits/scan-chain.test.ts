import assert from 'node:assert/strict';
import { Worker } from '@temporalio/worker';
import { rescanFrom } from '../../../commands/deposits/chain-scan.ts';
import { tokenTransfer } from '../../../dev/tron/drafts.ts';
import { scanChainWorkflowId, watchDepositWorkflowId } from '../../../workflows/messages.ts';
import {
  type DepositStack,
  openAddress,
  readLeft,
  startDepositStack,
  untilDeposit,
  untilScanned,
} from '../../support/deposits/deposit-stack.ts';
import { assertLedgerClean } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import { testWorkflowBundle } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

const CENTS = 2_500;
const EXACT = 25_000_000n;

describe('the scan of a chain', function () {
  this.timeout(240_000);
  let deposits: DepositStack;
  afterEach(async () => {
    await assertLedgerClean(deposits.stack);
    await deposits.stop();
  });

  const pays = (to: string) => tokenTransfer({ to, valueMicroUsdt: EXACT });
  const workflow = () => {
    const { client, config } = deposits.stack;
    return client.workflow.getHandle(scanChainWorkflowId('private', config.taskQueuePrefix));
  };
  async function details(): Promise<string> {
    const { currentDetails } = await workflow().query<{ currentDetails?: string }>(
      '__temporal_workflow_metadata',
    );
    return currentDetails ?? '';
  }
  async function needsAttention(): Promise<boolean> {
    const { searchAttributes } = await workflow().describe();
    return searchAttributes.NeedsAttention?.[0] === true;
  }

  async function paidDeposit(partner: Awaited<ReturnType<DepositStack['stack']['createPartner']>>) {
    const deposit = await openAddress(partner, CENTS);
    deposits.chain.mine([pays(deposit.address)]);
    deposits.chain.solidify();
    return deposit;
  }

  it('continues from where it was after it is terminated, and shows operators how far it is', async () => {
    deposits = await startDepositStack();
    const partner = await deposits.stack.createPartner();
    const first = await paidDeposit(partner);
    await untilDeposit(partner, first.id, 'confirmed');
    await until('it runs', () => workflow().describe());
    const { runId } = await workflow().describe();
    await workflow().terminate('a test');
    await until('it runs again', async () => {
      const run = await workflow().describe();
      return run.status.name === 'RUNNING' && run.runId !== runId;
    });
    const second = await paidDeposit(partner);
    await untilDeposit(partner, second.id, 'confirmed');
    const { number } = deposits.chain.head;
    await until('its round is over', async () =>
      (await details()).includes(`block ${number - 2} of private`),
    );
    assert.match(await details(), /127\.0\.0\.1:\d+: in_use/);
    assert.equal(await needsAttention(), false);
    const watching = await until('the deposit has its workflow', () =>
      deposits.stack.client.workflow
        .getHandle(watchDepositWorkflowId(second.id))
        .describe()
        .catch(() => null),
    );
    assert.equal(watching.searchAttributes.DepositId?.[0], second.id);
  });

  it('begins before the first address was given out, even if no node had answered by then', async () => {
    deposits = await startDepositStack({}, { worker: false });
    const { chain, nodes, stack } = deposits;
    for (const { faults } of nodes) faults.add({ fault: 'hang' });
    await stack.startWorker();
    const partner = await stack.createPartner();
    const deposit = await paidDeposit(partner);
    chain.mineMany(120);
    await until('it needs attention', needsAttention);
    assert.match(await details(), /No block can be read at the moment/);
    assert.match(stack.logLines.join('\n'), /the scan is behind the chain/);
    for (const { faults } of nodes) faults.clear();
    await untilDeposit(partner, deposit.id, 'confirmed');
    await untilScanned(deposits, chain.solidNumber());
    const scan = await asOwner<{ behind: string }>(
      stack.config.databaseUrl,
      'SELECT solid_block_number - block_number AS behind FROM chain_scan WHERE checked_at IS NOT NULL',
    );
    assert.deepEqual(scan, [{ behind: '0' }]);
    await until('nothing needs attention', async () => !(await needsAttention()));
  });

  it('finds payments made while no worker ran, in the order of the chain', async () => {
    deposits = await startDepositStack({}, { worker: false });
    const { chain, stack } = deposits;
    const partner = await stack.createPartner();
    const opened = [];
    for (let count = 0; count < 12; count++) opened.push(await openAddress(partner, CENTS));
    for (const { address } of opened) {
      chain.mineMany(20, 1_000);
      chain.mine([pays(address), pays(address)]);
    }
    const { number } = chain.solidify();
    await stack.startWorker();
    await untilScanned(deposits, number);
    for (const { id } of opened) {
      const { status, payments } = await readLeft(deposits, partner, id);
      assert.deepEqual([status, payments], ['needs_review', ['credited', 'already_paid']]);
    }
    const { json } = await partner.call('GET', '/balance', { mode: 'live' });
    assert.equal(json.total, opened.length * CENTS);
  });

  it('reads again from the block that an operator names while it runs, and finds nothing twice', async () => {
    deposits = await startDepositStack();
    const { chain, stack } = deposits;
    const partner = await stack.createPartner();
    const deposit = await paidDeposit(partner);
    await untilDeposit(partner, deposit.id, 'confirmed');
    const before = await readLeft(deposits, partner, deposit.id);
    await assert.rejects(rescanFrom(stack.operator, { network: 'private', fromBlock: 10_000 }), {
      name: 'Refusal',
      message: /is at block \d+ and will get to 10000 on its own/,
    });
    const { cameTo } = await rescanFrom(stack.operator, { network: 'private', fromBlock: 2 });
    assert.ok(cameTo >= 8);
    // Begun too early, it is taken back.
    const takenBack = await rescanFrom(stack.operator, { network: 'private', fromBlock: cameTo });
    assert.ok(takenBack.cameTo >= cameTo);
    await rescanFrom(stack.operator, { network: 'private', fromBlock: 2 });
    const again = await paidDeposit(partner);
    await untilDeposit(partner, again.id, 'confirmed');
    await untilScanned(deposits, chain.solidNumber());
    assert.deepEqual(await readLeft(deposits, partner, deposit.id), {
      ...before,
      balanceCents: before.balanceCents + CENTS,
    });
    const [audited] = await asOwner(
      stack.config.databaseUrl,
      `SELECT actor, subject, detail->>'fromBlock' AS from_block FROM audit_entry WHERE action = 'tron.rescan'`,
    );
    assert.deepEqual(audited, { actor: 'test', subject: 'private', from_block: '2' });
  });

  it('continues as new after some rounds, so that its history stays short, and each run replays', async () => {
    deposits = await startDepositStack({}, { worker: false });
    await deposits.stack.startWorker({
      around: {
        // Rounds that are over at once.
        depositActivities: (activities) => ({ ...activities, scanBlocks: async () => ({ state: 'idle' }) }),
      },
    });
    const first = await until('it runs', () =>
      workflow()
        .describe()
        .catch(() => null),
    );
    await until(
      'it has gone on in another run',
      async () => (await workflow().describe()).runId !== first.runId,
    );
    const { client } = deposits.stack;
    const before = client.workflow.getHandle(workflow().workflowId, first.runId);
    const history = await before.fetchHistory();
    assert.ok((history.events?.length ?? 0) < 1_200, `${history.events?.length} events`);
    await Worker.runReplayHistory({ workflowBundle: await testWorkflowBundle() }, history);
  });
});

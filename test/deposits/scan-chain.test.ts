import assert from 'node:assert/strict';
import { Worker } from '@temporalio/worker';
import { rescanFrom } from '../../deposits/chain-scan.ts';
import type { ScanReport } from '../../deposits/scan-activities.ts';
import { ensureScan } from '../../deposits/workflows.ts';
import { tokenTransfer } from '../../dev/tron/drafts.ts';
import { depositsTaskQueue } from '../../platform/config/task-queues.ts';
import { scanChainWorkflowId, watchDepositWorkflowId } from '../../workflows/messages.ts';
import { openAddress, readLeft, untilDeposit } from '../support/deposits/deposit-stack.ts';
import {
  type ScannedChain,
  startAddressStack,
  startScannedChain,
} from '../support/deposits/scanned-chain.ts';
import { assertLedgerClean } from '../support/money.ts';
import { asOwner } from '../support/postgres.ts';
import { type TestPartner, type TestStack, testWorkflowBundle } from '../support/stack.ts';
import { until } from '../support/until.ts';
import { detailsOf, untilStarted } from '../support/workflows.ts';

const CENTS = 2_500;
const EXACT = 25_000_000n;
const pays = (to: string) => tokenTransfer({ to, valueMicroUsdt: EXACT });

describe('the scan of a chain', () => {
  let stack: TestStack;
  let scanned: ScannedChain;
  let partner: TestPartner;
  before(async () => {
    stack = await startAddressStack();
  });
  beforeEach(async () => {
    scanned = await startScannedChain(stack);
    partner = await stack.createPartner();
  });
  afterEach(async () => {
    await assertLedgerClean(stack);
    await scanned.stop();
  });
  after(() => stack.stop());

  async function paidDeposit() {
    const deposit = await openAddress(partner, CENTS);
    scanned.chain.mine([pays(deposit.address)]);
    scanned.chain.solidify();
    return deposit;
  }

  it('begins before the first address was given out, even if no node had answered by then', async () => {
    const { chain, nodes, log, look } = scanned;
    for (const { faults } of nodes) faults.add({ fault: 'disconnect' });
    const deposit = await paidDeposit();
    chain.mineMany(120);
    const report = await look();
    assert.ok(report.state === 'scanning' && report.unreadable !== null && report.block === null);
    assert.ok(log.some(({ msg }) => msg === 'the scan is behind the chain'));
    for (const { faults } of nodes) faults.clear();
    await look();
    assert.equal((await readLeft(scanned, partner, deposit.id)).status, 'confirmed');
    const scan = await asOwner<{ behind: string }>(
      stack.config.databaseUrl,
      'SELECT solid_block_number - block_number AS behind FROM chain_scan WHERE checked_at IS NOT NULL',
    );
    assert.deepEqual(scan, [{ behind: '0' }]);
  });

  it('reads again from the block that an operator names, and finds nothing twice', async () => {
    const deposit = await paidDeposit();
    await scanned.look();
    const before = await readLeft(scanned, partner, deposit.id);
    assert.equal(before.status, 'confirmed');
    const { cameTo } = await rescanFrom(stack.operator, { network: 'private', fromBlock: 2 });
    assert.ok(cameTo >= 8);
    // Begun too early, it is taken back.
    const takenBack = await rescanFrom(stack.operator, { network: 'private', fromBlock: cameTo });
    assert.ok(takenBack.cameTo >= cameTo);
    await rescanFrom(stack.operator, { network: 'private', fromBlock: 2 });
    const again = await paidDeposit();
    await scanned.look();
    assert.equal((await readLeft(scanned, partner, again.id)).status, 'confirmed');
    assert.deepEqual(await readLeft(scanned, partner, deposit.id), {
      ...before,
      balanceCents: before.balanceCents + CENTS,
    });
  });

  it('is a workflow that tells operators how far it is, continues as new, and is begun again after its end', async () => {
    const { config, client } = stack;
    const { nodes, chain } = scanned;
    /** What a round reports that does not look, so that many rounds are quick. */
    let report: ScanReport | undefined;
    await stack.startWorker({
      // Rounds that end when there is no more to read, instead of after 20 s.
      around: {
        depositActivities: (activities) => ({
          ...activities,
          scanBlocks: async () => report ?? scanned.look(),
        }),
      },
    });
    const workflow = client.workflow.getHandle(scanChainWorkflowId('private', config.taskQueuePrefix));
    const needsAttention = async () =>
      (await workflow.describe()).searchAttributes.NeedsAttention?.[0] === true;
    await untilStarted(workflow);
    const { runId } = await workflow.describe();
    const first = await paidDeposit();
    await untilDeposit(partner, first.id, 'confirmed');
    await until('its details say how far it is', async () =>
      (await detailsOf(workflow)).includes(`block ${chain.solidNumber()} of private`),
    );
    assert.match(await detailsOf(workflow), /127\.0\.0\.1:\d+: in_use/);
    assert.equal(await needsAttention(), false);
    const watching = client.workflow.getHandle(watchDepositWorkflowId(first.id));
    await untilStarted(watching);
    assert.equal((await watching.describe()).searchAttributes.DepositId?.[0], first.id);

    for (const { faults } of nodes) faults.add({ fault: 'disconnect' });
    await until('it needs attention', needsAttention);
    for (const { faults } of nodes) faults.clear();
    await until('nothing needs attention', async () => !(await needsAttention()));

    report = await scanned.look();
    await until('it has gone on in another run', async () => (await workflow.describe()).runId !== runId);
    report = undefined;
    const history = await client.workflow.getHandle(workflow.workflowId, runId).fetchHistory();
    assert.ok((history.events?.length ?? 0) < 1_200, `${history.events?.length} events`);
    await Worker.runReplayHistory({ workflowBundle: await testWorkflowBundle() }, history);

    await workflow.terminate('a test');
    const taskQueue = depositsTaskQueue(config.taskQueuePrefix);
    await ensureScan(client, 'private', { taskQueuePrefix: config.taskQueuePrefix, taskQueue });
    const second = await paidDeposit();
    await untilDeposit(partner, second.id, 'confirmed');
    await stack.stopWorker();
  });
});

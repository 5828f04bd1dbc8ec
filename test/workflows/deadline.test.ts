import assert from 'node:assert/strict';
import type { WorkflowHandle } from '@temporalio/client';
import { query } from '../../db/sql.ts';
import { issueCardWorkflowId, networkResult, resolveIssuance } from '../../workflows/messages.ts';
import { startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';
import { createCard, eventTypes, readCardRow } from './support/cards.ts';
import { assertBalance, assertLedgerClean, fundedPartner, priceOf } from './support/money.ts';
import { skipTime } from './support/skip-time.ts';
import { until } from './support/until.ts';

const AMOUNT_CENTS = 10_047;
const HOUR_MS = 3_600_000;

/** The network accepts and then stays silent; a workflow's own time is skipped on the real server. */
describe('the 24-hour deadline of an issuance', function () {
  this.timeout(180_000);
  let stack: TestStack;
  before(async () => {
    stack = await startTestStack();
  });
  after(() => stack.stop());

  interface Silent {
    partner: TestPartner;
    externalRef: string;
    cardId: string;
    workflow: WorkflowHandle;
  }

  async function issueInSilence(): Promise<Silent> {
    const partner = await fundedPartner(stack);
    const externalRef = 'the same again';
    const created = await createCard(partner, 'live', AMOUNT_CENTS, { externalRef });
    assert.equal(created.status, 202, created.text);
    const cardId: string = created.json.id;
    const workflow = stack.client.workflow.getHandle(issueCardWorkflowId(cardId));
    return { partner, externalRef, cardId, workflow };
  }

  const isFlagged = async ({ cardId }: Silent) => (await readCardRow(stack, cardId))?.overdue_since != null;
  const assertHeld = ({ partner }: Silent) =>
    assertBalance(stack, partner, 'live', { spentCents: 0, heldCents: priceOf(AMOUNT_CENTS) });

  const needsAttention = async ({ workflow: { workflowId } }: Silent) => {
    const found = stack.client.workflow.list({
      query: `NeedsAttention = true AND WorkflowId = '${workflowId}'`,
    });
    for await (const _ of found) return true;
    return false;
  };

  async function details({ workflow }: Silent): Promise<string> {
    const metadata = await workflow.query<{ currentDetails?: string }>('__temporal_workflow_metadata');
    return metadata.currentDetails ?? '';
  }

  it('is kept, then an operator decides: issued, failed, or what the network says after all', async () => {
    const [issued, failed, late] = await Promise.all([issueInSilence(), issueInSilence(), issueInSilence()]);
    const all = [issued, failed, late];

    await Promise.all(all.map(({ workflow }) => skipTime(workflow, 23 * HOUR_MS)));
    for (const silent of all) {
      assert.equal(await isFlagged(silent), false);
      assert.equal(await needsAttention(silent), false);
    }
    await failed.workflow.signal(resolveIssuance, { outcome: 'issued' });
    await failed.workflow.cancel();

    await Promise.all(all.map(({ workflow }) => skipTime(workflow, 2 * HOUR_MS)));
    for (const silent of all) {
      assert.equal(await isFlagged(silent), true);
      await until('it can be found', () => needsAttention(silent));
      assert.match(await details(silent), /`resolve` with \{"outcome": "issued"\}/);
      await assertHeld(silent);
      assert.equal((await readCardRow(stack, silent.cardId))?.status, 'funding_pending');
    }

    await issued.workflow.signal(resolveIssuance, { outcome: 'issued' });
    for (const mistyped of [{ outcome: 'fail' }, null]) await failed.workflow.signal('resolve', mistyped);
    await failed.workflow.signal(resolveIssuance, { outcome: 'failed' });
    await query(
      stack.orm.em.fork(),
      'UPDATE simulated_network.operation SET completes_at = clock_timestamp() WHERE token = $1',
      [late.cardId],
    );
    await late.workflow.signal(networkResult);
    await Promise.all(all.map(({ workflow }) => workflow.result()));

    for (const active of [issued, late]) {
      assert.equal((await readCardRow(stack, active.cardId))?.status, 'active');
      assert.deepEqual(await eventTypes(stack, active.cardId), ['card.issued']);
      await assertBalance(stack, active.partner, 'live', { spentCents: priceOf(AMOUNT_CENTS), heldCents: 0 });
    }
    assert.match((await readCardRow(stack, late.cardId))?.last4 ?? '', /^\d{4}$/);

    const row = await readCardRow(stack, failed.cardId);
    assert.deepEqual([row?.status, row?.failure_code], ['failed', 'operator_failed']);
    assert.deepEqual(await eventTypes(stack, failed.cardId), ['card.issue_failed']);
    await assertBalance(stack, failed.partner, 'live', { spentCents: 0, heldCents: 0 });
    const again = await createCard(failed.partner, 'live', 10_000, { externalRef: failed.externalRef });
    assert.equal(again.status, 201, again.text);

    for (const silent of all) {
      assert.equal((await readCardRow(stack, silent.cardId))?.overdue_since, null);
      await until('it is no longer found', async () => !(await needsAttention(silent)));
      assert.equal(await details(silent), '');
    }
    await assertLedgerClean(stack);
  });
});

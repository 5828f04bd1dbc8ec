import assert from 'node:assert/strict';
import { networkResult } from '../../workflows/messages.ts';
import { createCard, readCardRow } from '../support/cards.ts';
import { assertLedgerClean } from '../support/money.ts';
import {
  assertMoney,
  completeAtNetwork,
  ISSUANCE,
  NEVER_FINISHES,
  OPERATION_KINDS,
  type OperationKind,
  rowOf,
  type Stuck,
  stuck,
  typesAbout,
} from '../support/operation-kinds.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestStack } from '../support/stack.ts';
import { until, untilHolds } from '../support/until.ts';
import { detailsOf } from '../support/workflows.ts';

describe('an operation past its deadline', () => {
  let stack: TestStack;
  before(async () => {
    stack = await sharedStack('deadlines');
  });

  const isFlagged = async (one: Stuck) => (await rowOf(one))?.overdue_since != null;
  const needsAttention = async ({ workflow: { workflowId } }: Stuck) => {
    const query = `NeedsAttention = true AND WorkflowId = '${workflowId}'`;
    for await (const _ of stack.client.workflow.list({ query })) return true;
    return false;
  };

  /** The payload that the details say to signal for this outcome. */
  async function payloadOf({ workflow }: Stuck, outcome: string): Promise<unknown> {
    const details = await detailsOf(workflow);
    const [payload] = details
      .split('`')
      .filter((code) => code.startsWith('{') && code.includes(`"${outcome}"`));
    assert.ok(details.includes('send the signal `resolve` with') && payload !== undefined, details);
    return JSON.parse(payload);
  }

  for (const kind of OPERATION_KINDS) {
    it(`waits for an operator, who resolves ${kind.name} as ${kind.yes} or failed, unless the network decides after all`, () =>
      passDeadline(kind));

    it(`is nobody's business before that, and shows when ${kind.name} is asked about next`, async () => {
      const one = await stuck(await sharedStack(), kind);
      await untilHolds(async () => {
        assert.match(
          await detailsOf(one.workflow),
          /^The card network has accepted the request but not decided yet\. Asked \S+( times)?, next at 20\S+Z, deadline 20\S+Z\./,
        );
      });
      assert.deepEqual([await isFlagged(one), await needsAttention(one)], [false, false]);
    });
  }

  async function passDeadline(kind: OperationKind): Promise<void> {
    const { yes, statuses, events } = kind;
    const [loaded, failed, late] = await Promise.all([
      stuck(stack, kind),
      stuck(stack, kind),
      stuck(stack, kind),
    ]);
    const all = [loaded, failed, late];

    await failed.workflow.cancel();
    for (const one of all) {
      await until('it is flagged', () => isFlagged(one));
      await until('it can be found', () => needsAttention(one));
      assert.match(
        await detailsOf(one.workflow),
        /^\*\*Waiting for an operator\.\*\*.*Asked \d+ times, next at 20/s,
      );
      await assertMoney(one, 'pending', NEVER_FINISHES);
      assert.equal((await rowOf(one))?.status, statuses.pending);
    }

    await loaded.workflow.signal('resolve', await payloadOf(loaded, yes));
    for (const mistyped of [{ outcome: 'fail' }, null]) await failed.workflow.signal('resolve', mistyped);
    await failed.workflow.signal('resolve', await payloadOf(failed, 'failed'));
    await completeAtNetwork(stack, late.id);
    await late.workflow.signal(networkResult);
    assert.deepEqual(await Promise.all(all.map(({ workflow }) => workflow.result())), [
      { outcome: yes },
      { outcome: 'failed', reason: 'operator_failed' },
      { outcome: yes },
    ]);

    for (const one of [loaded, late]) {
      assert.equal((await rowOf(one))?.status, statuses.succeeded);
      assert.deepEqual(await typesAbout(one), [events.succeeded]);
      await assertMoney(one, 'succeeded', NEVER_FINISHES);
    }
    const row = await rowOf(failed);
    assert.deepEqual([row?.status, row?.failure_code], ['failed', 'operator_failed']);
    assert.deepEqual(await typesAbout(failed), [events.failed]);
    await assertMoney(failed, 'failed');

    for (const one of all) {
      assert.equal(await isFlagged(one), false);
      await until('it is no longer found', async () => !(await needsAttention(one)));
      assert.match(await detailsOf(one.workflow), /^Over: \w+/);
    }
    if (kind === ISSUANCE) await assertCards(late, failed);
    await assertLedgerClean(stack);
  }

  /** Asserts that the one has its digits from the network, and that the other's external_ref is free again. */
  async function assertCards(issued: Stuck, failed: Stuck): Promise<void> {
    assert.match((await readCardRow(stack, issued.id))?.last4 ?? '', /^\d{4}$/);
    const { external_ref: externalRef = '' } = (await readCardRow(stack, failed.id)) ?? {};
    const body = { amount: 10_000, external_ref: externalRef };
    const again = await createCard(failed.partner, body, { mode: 'live' });
    assert.equal(again.status, 201, again.text);
  }
});

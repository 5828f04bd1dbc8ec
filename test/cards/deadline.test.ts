import assert from 'node:assert/strict';
import { query } from '../../platform/db/sql.ts';
import { networkResult } from '../../workflows/messages.ts';
import { createCard, readCardRow } from '../support/cards.ts';
import { assertBalance, assertLedgerClean } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import { SILENT_KINDS, type Silent, type SilentKind } from '../support/silent-operations.ts';
import type { TestStack } from '../support/stack.ts';
import { until, untilHolds } from '../support/until.ts';
import { detailsOf } from '../support/workflows.ts';

describe('an operation past its deadline', () => {
  let stack: TestStack;
  before(async () => {
    stack = await sharedStack('deadlines');
  });

  const isFlagged = async (silent: Silent) => (await silent.row())?.overdue_since != null;
  const assertMoney = ({ partner, spentBeforeCents }: Silent, spentCents: number, heldCents: number) =>
    assertBalance(stack, partner, 'live', { spentCents: spentBeforeCents + spentCents, heldCents });

  const needsAttention = async ({ workflow: { workflowId } }: Silent) => {
    const found = stack.client.workflow.list({
      query: `NeedsAttention = true AND WorkflowId = '${workflowId}'`,
    });
    for await (const _ of found) return true;
    return false;
  };

  /** The payload that the details say to signal for this outcome. */
  async function payloadOf({ workflow }: Silent, outcome: string): Promise<unknown> {
    const details = await detailsOf(workflow);
    const [payload] = details
      .split('`')
      .filter((code) => code.startsWith('{') && code.includes(`"${outcome}"`));
    assert.ok(details.includes('send the signal `resolve` with') && payload !== undefined, details);
    return JSON.parse(payload);
  }

  for (const kind of SILENT_KINDS) {
    const { name, yes } = kind;
    it(`waits for an operator, who resolves ${name} as ${yes} or failed, unless the network decides after all`, () =>
      passDeadline(kind));
  }

  for (const { name, begin } of SILENT_KINDS) {
    it(`is nobody's business before that, and shows when ${name} is asked about next`, async () => {
      const silent = await begin(await sharedStack());
      await untilHolds(async () => {
        assert.match(
          await detailsOf(silent.workflow),
          /^The card network has accepted the request but not decided yet\. Asked \S+( times)?, next at 20\S+Z, deadline 20\S+Z\./,
        );
      });
      assert.equal(await isFlagged(silent), false);
      assert.equal(await needsAttention(silent), false);
    });
  }

  async function passDeadline({ name, yes, pending, succeeded, told, begin }: SilentKind): Promise<void> {
    const [loaded, failed, late] = await Promise.all([begin(stack), begin(stack), begin(stack)]);
    const all = [loaded, failed, late];

    await failed.workflow.cancel();
    for (const silent of all) {
      await until('it is flagged', () => isFlagged(silent));
      await until('it can be found', () => needsAttention(silent));
      assert.match(
        await detailsOf(silent.workflow),
        /^\*\*Waiting for an operator\.\*\*.*Asked \d+ times, next at 20/s,
      );
      await assertMoney(silent, 0, silent.heldCents);
      assert.equal((await silent.row())?.status, pending);
    }

    await loaded.workflow.signal('resolve', await payloadOf(loaded, yes));
    for (const mistyped of [{ outcome: 'fail' }, null]) await failed.workflow.signal('resolve', mistyped);
    await failed.workflow.signal('resolve', await payloadOf(failed, 'failed'));
    await query(
      stack.orm.em.fork(),
      'UPDATE simulated_network.operation SET completes_at = clock_timestamp() WHERE token = $1',
      [late.id],
    );
    await late.workflow.signal(networkResult);
    assert.deepEqual(await Promise.all(all.map(({ workflow }) => workflow.result())), [
      { outcome: yes },
      { outcome: 'failed', reason: 'operator_failed' },
      { outcome: yes },
    ]);

    for (const silent of [loaded, late]) {
      assert.equal((await silent.row())?.status, succeeded);
      assert.deepEqual(await silent.events(), [told.yes]);
      // A withdrawal puts its amount on the prepaid balance.
      await assertMoney(silent, name === 'a withdrawal' ? -10_047 : silent.heldCents, 0);
    }
    const row = await failed.row();
    assert.deepEqual([row?.status, row?.failure_code], ['failed', 'operator_failed']);
    assert.deepEqual(await failed.events(), [told.no]);
    await assertMoney(failed, 0, 0);

    for (const silent of all) {
      assert.equal((await silent.row())?.overdue_since, null);
      await until('it is no longer found', async () => !(await needsAttention(silent)));
      assert.match(await detailsOf(silent.workflow), /^Over: \w+/);
    }
    if (name === 'an issuance') await assertCards(late, failed);
    await assertLedgerClean(stack);
  }

  /** Asserts that the one has its digits from the network, and that the other's external_ref is free again. */
  async function assertCards(issued: Silent, failed: Silent): Promise<void> {
    assert.match((await readCardRow(stack, issued.id))?.last4 ?? '', /^\d{4}$/);
    const { external_ref: externalRef = '' } = (await readCardRow(stack, failed.id)) ?? {};
    const again = await createCard(
      failed.partner,
      { amount: 10_000, external_ref: externalRef },
      { mode: 'live' },
    );
    assert.equal(again.status, 201, again.text);
  }
});

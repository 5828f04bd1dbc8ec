import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { decideIssuance, decideTransfer } from '../../cards/resolve.ts';
import { cardsTaskQueue } from '../../platform/config/task-queues.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { query } from '../../platform/db/sql.ts';
import { readOperationState } from '../../requests/claimed-workflow.ts';
import {
  CHANGE_CARD_STATUS,
  ISSUE_CARD,
  networkResult,
  TOP_UP_CARD,
  WITHDRAW_FROM_CARD,
} from '../../workflows/messages.ts';
import { eventTypes } from '../support/cards.ts';
import { claimOf } from '../support/claims.ts';
import { assertBalance, assertLedgerClean } from '../support/money.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import { SILENT_KINDS, type Silent, type SilentKind } from '../support/silent-operations.ts';
import type { TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';
import { detailsOf } from '../support/workflows.ts';

const DAY_MS = 24 * 3_600_000;

/** Whoever reaches Temporal can start our workflows with any input, and signal them. */
describe('a decision that is signalled by hand', () => {
  let stack: TestStack;
  before(async () => {
    stack = await sharedStack();
  });
  after(async () => {
    await assertLedgerClean(stack);
  });

  /** A workflow that somebody starts under a name of his own. */
  const startForeign = (type: string, claimId: string): Promise<WorkflowHandle> =>
    stack.client.workflow.start(type, {
      workflowId: `foreign-${randomUUID()}`,
      taskQueue: cardsTaskQueue(stack.config.taskQueuePrefix),
      args: [{ claimId, deadlineMs: 0 }],
    });

  const untilSaid = (workflow: WorkflowHandle, words: string) =>
    until(`its details say "${words}"`, async () => (await detailsOf(workflow)).includes(words));

  /** Waits until it has tried to apply so many decisions. */
  const untilLookedAt = (workflow: WorkflowHandle, decisions: number) =>
    until(`it has looked at ${decisions} decisions`, async () => {
      const { events } = await workflow.fetchHistory();
      const scheduled = (events ?? []).filter((event) =>
        /^apply\w+Resolution$/.test(event.activityTaskScheduledEventAttributes?.activityType?.name ?? ''),
      );
      const completed = (events ?? []).filter((event) =>
        scheduled.some(
          ({ eventId }) =>
            String(eventId) === String(event.activityTaskCompletedEventAttributes?.scheduledEventId),
        ),
      );
      return completed.length === decisions;
    });

  /** Actor and outcome of every decision in the audit, oldest first. */
  const audited = async ({ id }: Silent): Promise<[string, string][]> => {
    const rows = await query<{ actor: string; outcome: string }>(
      stack.orm.em.fork(),
      `SELECT actor, detail ->> 'outcome' AS outcome FROM audit_entry WHERE subject = $1 ORDER BY id`,
      [id],
    );
    return rows.map(({ actor, outcome }) => [actor, outcome]);
  };

  async function assertUntouched(silent: Silent, pending: string): Promise<void> {
    const row = await silent.row();
    assert.deepEqual([row?.status, row?.overdue_since], [pending, null]);
    assert.deepEqual(await silent.events(), []);
    assert.deepEqual(await audited(silent), []);
    const { partner, spentBeforeCents: spentCents, heldCents } = silent;
    await assertBalance(stack, partner, 'live', { spentCents, heldCents });
  }

  /** Holds money, events and audit to one end; `actor` decided it. */
  async function assertEnded(
    silent: Silent,
    kind: SilentKind,
    outcome: string,
    actor: string,
  ): Promise<void> {
    const isYes = outcome === kind.yes;
    assert.equal((await silent.row())?.status, isYes ? kind.succeeded : 'failed');
    assert.deepEqual(await silent.events(), [isYes ? kind.told.yes : kind.told.no]);
    assert.deepEqual(await audited(silent), [[actor, outcome]]);
    const spentCents = silent.spentBeforeCents + (isYes ? silent.costCents : 0);
    await assertBalance(stack, silent.partner, 'live', { spentCents, heldCents: 0 });
  }

  /** Records a decision as an operator's command does that dies right after. */
  function record(silent: Silent, { type }: SilentKind, isYes: boolean): Promise<void> {
    const about = { reason: 'by telephone', deadlineMs: DAY_MS };
    if (type === ISSUE_CARD) {
      const outcome = isYes ? ('issued' as const) : ('failed' as const);
      return decideIssuance(stack.operator, { cardId: silent.id, outcome, ...about });
    }
    const outcome = isYes ? ('succeeded' as const) : ('failed' as const);
    const direction = type === TOP_UP_CARD ? 'topup' : 'withdrawal';
    return decideTransfer(stack.operator, { direction, id: silent.id, outcome, ...about });
  }

  for (const kind of SILENT_KINDS) {
    const { name, type, yes, pending, begin } = kind;

    it(`changes nothing about ${name} before its deadline, whatever deadline the workflow was given`, async () => {
      const silent = await begin(stack);
      const foreign = await startForeign(type, await claimOf(stack, silent.id));
      for (const workflow of [foreign, silent.workflow]) {
        for (const [index, outcome] of [yes, 'failed'].entries()) {
          await workflow.signal('resolve', { outcome });
          await untilLookedAt(workflow, index + 1);
          await untilSaid(workflow, 'A decision arrived before the deadline');
        }
      }
      await assertUntouched(silent, pending);

      await silent.age();
      await foreign.signal('resolve', { outcome: yes });
      await foreign.result();
      await assertEnded(silent, kind, yes, 'temporal');
      await silent.workflow.signal(networkResult);
      await silent.workflow.result();
      await assertEnded(silent, kind, yes, 'temporal');
    });

    it(`takes back that ${name} waits for an operator if its deadline has become longer, and waits for that`, async () => {
      const silent = await begin(stack);
      await silent.age();
      const foreign = await startForeign(type, await claimOf(stack, silent.id));
      const state = () => readOperationState(stack.client, foreign.workflowId);
      await until('it waits for an operator', async () => (await state())?.overdue);
      const table = type === ISSUE_CARD ? 'card' : 'card_transfer';
      await asOwner(stack, `UPDATE ${table} SET created_at = now() WHERE id = $1`, [silent.id]);
      await foreign.signal('resolve', { outcome: yes });
      await until('it does no longer', async () => (await state())?.overdue === false);
      assert.ok(Date.parse((await state())?.deadline ?? '') > Date.now() + DAY_MS / 2);
      await untilSaid(foreign, 'A decision arrived before the deadline');
      await assertUntouched(silent, pending);
      await foreign.terminate('by a test');
    });

    it(`names in the audit log whom Temporal recorded as the sender of a signal about ${name}`, async () => {
      const silent = await begin(stack);
      await silent.age();
      const { workflowService, options } = stack.client;
      const send = (identity: string, outcome: string) =>
        workflowService.signalWorkflowExecution({
          namespace: options.namespace,
          workflowExecution: { workflowId: silent.workflow.workflowId },
          signalName: 'resolve',
          input: {
            payloads: [stack.client.options.loadedDataConverter.payloadConverter.toPayload({ outcome })],
          },
          identity,
        });
      await send('mallory@example.com', 'nonsense');
      await send('ada@example.com\u202e', yes);
      await silent.workflow.result();
      const [entry] = await query<{ identity: string }>(
        stack.orm.em.fork(),
        `SELECT detail ->> 'identity' AS identity FROM audit_entry WHERE subject = $1`,
        [silent.id],
      );
      assert.equal(entry?.identity, 'ada@example.com?');
      await assertEnded(silent, kind, yes, 'temporal');
    });

    it(`does not override an operator's recorded decision about ${name}`, async () => {
      const silent = await begin(stack);
      await silent.age();
      await record(silent, kind, false);
      await silent.workflow.signal('resolve', { outcome: yes });
      // It is looked at again then, with what the operator has recorded.
      await silent.workflow.result();
      await assertEnded(silent, kind, 'failed', 'test');
    });

    it(`is applied once to ${name}, however many arrive at once`, async () => {
      const silent = await begin(stack);
      await silent.age();
      const claimId = await claimOf(stack, silent.id);
      const foreign = await Promise.all(Array.from({ length: 3 }, () => startForeign(type, claimId)));
      const workflows = [silent.workflow, ...foreign];
      await Promise.all(
        workflows.map((workflow, index) =>
          workflow.signal('resolve', { outcome: index % 2 === 0 ? yes : 'failed' }),
        ),
      );
      await Promise.all(workflows.map((workflow) => workflow.result()));
      const [entry] = await audited(silent);
      await assertEnded(silent, kind, entry?.[1] ?? '', 'temporal');
    });

    it(`is ignored for ${name} if the signal cannot be read`, async () => {
      const silent = await begin(stack);
      await silent.age();
      for (const told of [
        ...[null, 1, 'failed', [], {}, { outcome: 'fail' }, { outcome: ['failed'] }],
        ...['', 'a b', 'x'.repeat(101), 1, {}].map((networkCardId) => ({ outcome: yes, networkCardId })),
      ]) {
        await silent.workflow.signal('resolve', told);
      }
      await silent.workflow.signal(networkResult);
      await until('it has asked again', async () => (await silent.row())?.status === pending);
      assert.deepEqual(await audited(silent), []);
      await silent.workflow.signal('resolve', { outcome: 'failed' });
      await silent.workflow.result();
      await assertEnded(silent, kind, 'failed', 'temporal');
    });
  }

  it("changes nothing through a workflow that has another operation's claim, or none", async () => {
    const [issuance, topUp, withdrawal] = await Promise.all(SILENT_KINDS.map(({ begin }) => begin(stack)));
    assert.ok(issuance && topUp && withdrawal);
    await Promise.all([issuance.age(), topUp.age(), withdrawal.age()]);
    const [ofCard, ofTopUp] = [await claimOf(stack, issuance.id), await claimOf(stack, topUp.id)];
    const ofWithdrawal = await claimOf(stack, withdrawal.id);
    const strangers = await Promise.all([
      startForeign(ISSUE_CARD, ofTopUp),
      startForeign(TOP_UP_CARD, ofCard),
      startForeign(TOP_UP_CARD, ofWithdrawal),
      startForeign(WITHDRAW_FROM_CARD, ofTopUp),
      startForeign(CHANGE_CARD_STATUS, ofCard),
      startForeign(CHANGE_CARD_STATUS, ofTopUp),
      startForeign(ISSUE_CARD, newId('claim')),
      startForeign(TOP_UP_CARD, "'; DROP TABLE card; --"),
    ]);
    const [refused, over] = [strangers.slice(0, 4), strangers.slice(4)];
    for (const stranger of refused) {
      for (const outcome of ['issued', 'succeeded', 'failed']) await stranger.signal('resolve', { outcome });
    }
    await Promise.all(over.map((stranger) => stranger.result()));
    await until('the others are refused', () =>
      refused.every(({ workflowId }) =>
        stack.logLines.some((line) => line.includes('an activity failed') && line.includes(workflowId)),
      ),
    );
    for (const stranger of refused) await stranger.terminate('by a test');
    for (const [silent, { pending }] of [
      [issuance, SILENT_KINDS[0]],
      [topUp, SILENT_KINDS[1]],
      [withdrawal, SILENT_KINDS[2]],
    ] as [Silent, SilentKind][]) {
      assert.equal((await silent.row())?.status, pending);
      assert.deepEqual(await audited(silent), []);
    }
    assert.deepEqual(await eventTypes(stack, issuance.id), []);
  });
});

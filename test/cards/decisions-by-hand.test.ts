import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { decideIssuance, decideTransfer } from '../../cards/resolve.ts';
import { cardsTaskQueue } from '../../platform/config/task-queues.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { query } from '../../platform/db/sql.ts';
import {
  CHANGE_CARD_STATUS,
  ISSUE_CARD,
  networkOperationState,
  networkResult,
  TOP_UP_CARD,
  WITHDRAW_FROM_CARD,
} from '../../workflows/messages.ts';
import { claimOf } from '../support/claims.ts';
import { assertLedgerClean } from '../support/money.ts';
import {
  age,
  assertMoney,
  NEVER_FINISHES,
  OPERATION_KINDS,
  rowOf,
  type Stuck,
  stuck,
  typesAbout,
} from '../support/operation-kinds.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';
import { detailsOf, metadataOf } from '../support/workflows.ts';

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
  const audited = async ({ id }: Stuck): Promise<[string, string][]> => {
    const rows = await query<{ actor: string; outcome: string }>(
      stack.orm.em.fork(),
      `SELECT actor, detail ->> 'outcome' AS outcome FROM audit_entry WHERE subject = $1 ORDER BY id`,
      [id],
    );
    return rows.map(({ actor, outcome }) => [actor, outcome]);
  };

  async function assertUntouched(one: Stuck): Promise<void> {
    const { status, overdue_since } = (await rowOf(one)) ?? {};
    assert.deepEqual([status, overdue_since], [one.kind.statuses.pending, null]);
    assert.deepEqual(await typesAbout(one), []);
    assert.deepEqual(await audited(one), []);
    await assertMoney(one, 'pending', NEVER_FINISHES);
  }

  /** Holds money, events and audit to one end; `actor` decided it. */
  async function assertEnded(one: Stuck, outcome: string, actor: string): Promise<void> {
    const { yes, statuses, events } = one.kind;
    const end = outcome === yes ? 'succeeded' : 'failed';
    assert.equal((await rowOf(one))?.status, end === 'succeeded' ? statuses.succeeded : 'failed');
    assert.deepEqual(await typesAbout(one), [events[end]]);
    assert.deepEqual(await audited(one), [[actor, outcome]]);
    await assertMoney(one, end, NEVER_FINISHES);
  }

  /** Records that it has failed as an operator's command does that dies right after. */
  function recordFailed({ kind, id }: Stuck): Promise<void> {
    const decision = { outcome: 'failed' as const, reason: 'by telephone', deadlineMs: DAY_MS };
    if (kind.object === 'card') return decideIssuance(stack.operator, { cardId: id, ...decision });
    return decideTransfer(stack.operator, { direction: kind.object, id, ...decision });
  }

  for (const kind of OPERATION_KINDS) {
    const {
      name,
      yes,
      workflow: { type },
    } = kind;

    it(`changes nothing about ${name} before its deadline, whatever deadline the workflow was given`, async () => {
      const one = await stuck(stack, kind);
      const foreign = await startForeign(type, await claimOf(stack, one.id));
      for (const workflow of [foreign, one.workflow]) {
        for (const [index, outcome] of [yes, 'failed'].entries()) {
          await workflow.signal('resolve', { outcome });
          await untilLookedAt(workflow, index + 1);
          await untilSaid(workflow, 'A decision arrived before the deadline');
        }
      }
      await assertUntouched(one);

      await age(one);
      await foreign.signal('resolve', { outcome: yes });
      await foreign.result();
      await assertEnded(one, yes, 'temporal');
      await one.workflow.signal(networkResult);
      await one.workflow.result();
      await assertEnded(one, yes, 'temporal');
    });

    it(`takes back that ${name} waits for an operator if its deadline has become longer, and waits for that`, async () => {
      const one = await stuck(stack, kind);
      await age(one);
      const foreign = await startForeign(type, await claimOf(stack, one.id));
      // It takes no query until the network has been asked once.
      const state = () => foreign.query(networkOperationState).catch(() => null);
      await until('it waits for an operator', async () => (await state())?.overdue);
      await asOwner(stack, `UPDATE ${kind.table} SET created_at = now() WHERE id = $1`, [one.id]);
      await foreign.signal('resolve', { outcome: yes });
      await until('it does no longer', async () => (await state())?.overdue === false);
      assert.ok(Date.parse((await state())?.deadline ?? '') > Date.now() + DAY_MS / 2);
      await untilSaid(foreign, 'A decision arrived before the deadline');
      await assertUntouched(one);
      await foreign.terminate('by a test');
    });

    it(`names in the audit log whom Temporal recorded as the sender of a signal about ${name}`, async () => {
      const one = await stuck(stack, kind);
      await age(one);
      const { workflowService, options } = stack.client;
      const send = (identity: string, outcome: string) =>
        workflowService.signalWorkflowExecution({
          namespace: options.namespace,
          workflowExecution: { workflowId: one.workflow.workflowId },
          signalName: 'resolve',
          input: {
            payloads: [stack.client.options.loadedDataConverter.payloadConverter.toPayload({ outcome })],
          },
          identity,
        });
      await send('mallory@example.com', 'nonsense');
      await send('ada@example.com\u202e', yes);
      await one.workflow.result();
      const [entry] = await query<{ identity: string }>(
        stack.orm.em.fork(),
        `SELECT detail ->> 'identity' AS identity FROM audit_entry WHERE subject = $1`,
        [one.id],
      );
      assert.equal(entry?.identity, 'ada@example.com?');
      await assertEnded(one, yes, 'temporal');
    });

    it(`is announced with every other signal and query of ${name}, and what it is for`, async () => {
      const { workflow } = await stuck(stack, kind);
      const { definition } = await metadataOf(workflow);
      const defined = [...(definition?.signalDefinitions ?? []), ...(definition?.queryDefinitions ?? [])];
      const ours = defined.filter(({ name: what }) => !what?.startsWith('__'));
      assert.deepEqual(ours.map(({ name: what }) => what).toSorted(), ['networkResult', 'resolve', 'state']);
      for (const { name: what, description } of ours) assert.ok(description, what ?? '');
    });

    it(`does not override an operator's recorded decision about ${name}`, async () => {
      const one = await stuck(stack, kind);
      await age(one);
      await recordFailed(one);
      await one.workflow.signal('resolve', { outcome: yes });
      // It is looked at again then, with what the operator has recorded.
      await one.workflow.result();
      await assertEnded(one, 'failed', 'test');
    });

    it(`is applied once to ${name}, however many arrive at once`, async () => {
      const one = await stuck(stack, kind);
      await age(one);
      const claimId = await claimOf(stack, one.id);
      const foreign = await Promise.all(Array.from({ length: 3 }, () => startForeign(type, claimId)));
      const workflows = [one.workflow, ...foreign];
      await Promise.all(
        workflows.map((workflow, index) =>
          workflow.signal('resolve', { outcome: index % 2 === 0 ? yes : 'failed' }),
        ),
      );
      await Promise.all(workflows.map((workflow) => workflow.result()));
      const [entry] = await audited(one);
      await assertEnded(one, entry?.[1] ?? '', 'temporal');
    });

    it(`is ignored for ${name} if the signal cannot be read`, async () => {
      const one = await stuck(stack, kind);
      await age(one);
      for (const told of [
        ...[null, 1, 'failed', [], {}, { outcome: 'fail' }, { outcome: ['failed'] }],
        ...['', 'a b', 'x'.repeat(101), 1, {}].map((networkCardId) => ({ outcome: yes, networkCardId })),
      ]) {
        await one.workflow.signal('resolve', told);
      }
      await one.workflow.signal(networkResult);
      await until('it has asked again', async () => (await rowOf(one))?.status === kind.statuses.pending);
      assert.deepEqual(await audited(one), []);
      await one.workflow.signal('resolve', { outcome: 'failed' });
      await one.workflow.result();
      await assertEnded(one, 'failed', 'temporal');
    });
  }

  it("changes nothing through a workflow that has another operation's claim, or none", async () => {
    const all = await Promise.all(OPERATION_KINDS.map((kind) => stuck(stack, kind)));
    await Promise.all(all.map(age));
    const claims = await Promise.all(all.map(({ id }) => claimOf(stack, id)));
    const [ofCard, ofTopUp, ofWithdrawal] = claims as [string, string, string];
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
    for (const one of all) {
      assert.equal((await rowOf(one))?.status, one.kind.statuses.pending);
      assert.deepEqual([await audited(one), await typesAbout(one)], [[], []]);
    }
  });
});

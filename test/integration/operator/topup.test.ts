import assert from 'node:assert/strict';
import { topUpCardWorkflowId } from '../../../workflows/messages.ts';
import { ACTOR, environmentOf, lastAudit, type Operate, operateIn } from '../../support/operator/operate.ts';
import {
  assertFailedUnanswered,
  assertResolvedUnnoticed,
  assertUnknownIsSaid,
  assertWorkersDeadlineCounts,
  testBeforeDeadline,
  testPastDeadline,
} from '../../support/operator/resolve-tests.ts';
import { NEVER_FINISHES, type Resolvable, resolvingIn } from '../../support/operator/resolving.ts';
import { startTestStack, type TestStack } from '../../support/stack.ts';
import { type Cardholder, cardholder, readCard, topUp, topUpEvents } from '../../support/top-ups.ts';
import { untilHolds } from '../../support/until.ts';

/** With its fee of 2 %. */
const HELD = NEVER_FINISHES + 201;
const TOP_UP: Resolvable = {
  ...{ command: 'topup', success: '--succeeded', pending: 'pending', succeeded: 'succeeded' },
  ...{ deadline: 'TOPUP_DEADLINE', workflowIdOf: topUpCardWorkflowId },
  ...{ kind: 'card_topup', waitsFor: 'whether it loaded the card' },
  unknownId: 'topup_01k0000000000000000000000a',
  unknown: (id) => new RegExp(`^There is no top-up ${id}: .*topups`),
};

describe('operator topup', () => {
  let stack: TestStack;
  let operate: Operate;
  let holder: Cardholder;

  async function startStack(topUpDeadlineMs: number): Promise<void> {
    stack = await startTestStack({ topUpDeadlineMs });
    operate = operateIn(environmentOf(stack.config));
    holder = await cardholder(stack, 'live', 1_000_000);
  }

  const createPending = async (): Promise<string> => {
    const { status, json, text } = await topUp(holder, NEVER_FINISHES);
    assert.equal(status, 202, text);
    return json.id;
  };
  const resolving = resolvingIn(TOP_UP, () => ({
    stack,
    operate,
    partnerId: holder.partner.id,
    createPending,
  }));
  const { resolve, attention, held, createOverdue } = resolving;

  describe('before the deadline', () => {
    let pending: string;
    before(async () => {
      await startStack(24 * 3_600_000);
      pending = await createPending();
    });
    after(() => stack.stop());

    it('shows the top-up, its partner and its workflow', async () => {
      const { json: loaded } = await topUp(holder, 10_000);
      const own = (id: string) => ({
        ...{ partner_id: holder.partner.id, partner_name: 'Test Partner', overdue_since: null },
        workflow_id: `top-up/${id}`,
      });
      await untilHolds(async () => {
        const { code, json } = await operate('topup', 'show', loaded.id);
        const expected = { ...loaded, ...own(loaded.id), waiting: null, workflow_status: 'completed' };
        assert.deepEqual({ code, json }, { code: 0, json: expected });
      });
      const { json } = await operate('topup', 'show', pending);
      assert.deepEqual(
        [json.status, json.card_balance, json.workflow_status],
        ['pending', 11_000, 'running'],
      );
    });

    testBeforeDeadline(resolving, () => pending, [
      ['resolve', TOP_UP.unknownId, '--issued', '--reason', 'r'],
    ]);

    it('refuses to resolve a top-up that has ended', async () => {
      const { json } = await topUp(holder, 10_000);
      const { code, err } = await resolve(json.id, '--failed');
      assert.equal(code, 1);
      assert.match(err, /has already succeeded/);
    });

    it('refuses an unknown top-up', () => assertUnknownIsSaid(resolving));

    it('resolves even if the workflow has not noticed the deadline, or is gone', () =>
      assertResolvedUnnoticed(resolving, createPending));

    it("uses the deadline in the workers' configuration", async () =>
      assertWorkersDeadlineCounts(resolving, await createPending()));
  });

  describe('past the deadline', () => {
    before(() => startStack(1_000));
    after(() => stack.stop());

    it('releases the money with resolve --failed, and records who did it and why', async () => {
      const id = await createOverdue();
      assert.equal(await held(), HELD);
      const { code, json } = await resolve(id, '--failed', 'no such load, ticket 4711');
      assert.deepEqual(
        [code, json.id, json.status, json.failure_code, json.overdue_since, json.card_balance],
        [0, id, 'failed', 'operator_failed', null, 1_000],
      );
      assert.equal(await held(), 0);
      const detail = {
        ...{ partnerId: holder.partner.id, mode: 'live', cardId: holder.cardId },
        ...{ outcome: 'failed', reason: 'no such load, ticket 4711' },
      };
      assert.deepEqual(await lastAudit(operate), {
        actor: ACTOR,
        action: 'topup.resolve',
        subject: id,
        detail,
      });
      assert.equal((await topUpEvents(stack, holder)).at(-1).type, 'topup.failed');
      const again = await resolve(id, '--succeeded');
      assert.equal(again.code, 1);
      assert.match(again.err, /has already failed/);
    });

    it('loads the card with resolve --succeeded', async () => {
      const { balance } = await readCard(holder);
      const id = await createOverdue();
      const { code, json } = await resolve(id, '--succeeded');
      assert.deepEqual([code, json.status, json.card_balance], [0, 'succeeded', balance + NEVER_FINISHES]);
      assert.equal((await readCard(holder)).balance, balance + NEVER_FINISHES);
      assert.equal(await held(), 0);
      assert.equal((await topUpEvents(stack, holder)).at(-1).type, 'topup.succeeded');
    });

    testPastDeadline(resolving);

    it('deletes a top-up whose request had no response yet with resolve --failed', () =>
      assertFailedUnanswered(resolving, stack.orm));

    it('leaves nothing to resolve when the card is blocked, which ends the top-up', async () => {
      const other = await cardholder(stack, 'live', 1_000_000);
      const { json } = await topUp(other, NEVER_FINISHES);
      await untilHolds(async () => {
        assert.ok((await operate('topup', 'show', json.id)).json.overdue_since);
      });
      const blocked = await other.partner.call('POST', `/cards/${other.cardId}/block`, { mode: 'live' });
      assert.equal(blocked.status, 200, blocked.text);
      assert.deepEqual(await attention(), []);
      const { err } = await resolve(json.id, '--succeeded');
      assert.match(err, /has already failed/);
    });
  });
});

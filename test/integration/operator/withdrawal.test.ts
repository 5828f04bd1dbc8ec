import assert from 'node:assert/strict';
import { withdrawFromCardWorkflowId } from '../../../workflows/messages.ts';
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
import { type Cardholder, cardholder, readCard, topUp } from '../../support/top-ups.ts';
import { untilHolds } from '../../support/until.ts';
import { withdraw, withdrawalEvents } from '../../support/withdrawals.ts';

/** What is on the card: enough for all that these tests leave pending. */
const CARD = 501_000;

const WITHDRAWAL: Resolvable = {
  command: 'withdrawal',
  success: '--succeeded',
  pending: 'pending',
  succeeded: 'succeeded',
  deadline: 'WITHDRAWAL_DEADLINE',
  workflowIdOf: withdrawFromCardWorkflowId,
  kind: 'card_withdrawal',
  waitsFor: 'whether it took the money off the card',
  unknownId: 'wdr_01k0000000000000000000000a',
  unknown: (id) => new RegExp(`^There is no withdrawal ${id}: .*withdrawals`),
};

describe('operator withdrawal', () => {
  let stack: TestStack;
  let operate: Operate;
  let holder: Cardholder;

  async function startStack(withdrawalDeadlineMs: number): Promise<void> {
    stack = await startTestStack({ withdrawalDeadlineMs });
    operate = operateIn(environmentOf(stack.config));
    holder = await cardholder(stack, 'live', 1_000_000);
    assert.equal((await topUp(holder, CARD - 1_000)).status, 201);
  }

  const createPending = async (): Promise<string> => {
    const { status, json, text } = await withdraw(holder, NEVER_FINISHES);
    assert.equal(status, 202, text);
    return json.id;
  };
  const resolving = resolvingIn(WITHDRAWAL, () => ({
    stack,
    operate,
    partnerId: holder.partner.id,
    createPending,
  }));
  const { resolve, createOverdue } = resolving;
  const heldOnCard = async () => {
    const card = await readCard(holder);
    return card.balance - card.available_balance;
  };

  describe('before the deadline', () => {
    let pending: string;
    before(async () => {
      await startStack(24 * 3_600_000);
      pending = await createPending();
    });
    after(() => stack.stop());

    it('shows the withdrawal, its partner and its workflow', async () => {
      const { json: done } = await withdraw(holder, 10_000);
      const own = (id: string) => ({
        partner_id: holder.partner.id,
        partner_name: 'Test Partner',
        overdue_since: null,
        workflow_id: `withdraw/${id}`,
      });
      await untilHolds(async () => {
        const { code, json } = await operate('withdrawal', 'show', done.id);
        const expected = { ...done, ...own(done.id), waiting: null, workflow_status: 'completed' };
        assert.deepEqual({ code, json }, { code: 0, json: expected });
      });
      const { json } = await operate('withdrawal', 'show', pending);
      assert.deepEqual(
        [json.status, json.card_balance, json.workflow_status],
        ['pending', CARD - 10_000, 'running'],
      );
    });

    testBeforeDeadline(resolving, () => pending, [
      ['resolve', WITHDRAWAL.unknownId, '--issued', '--reason', 'r'],
    ]);

    it('refuses to resolve a withdrawal that has ended', async () => {
      const { json } = await withdraw(holder, 10_000);
      const { code, err } = await resolve(json.id, '--failed');
      assert.equal(code, 1);
      assert.match(err, /has already succeeded/);
    });

    it('refuses an unknown withdrawal', () => assertUnknownIsSaid(resolving));

    it('resolves even if the workflow has not noticed the deadline, or is gone', () =>
      assertResolvedUnnoticed(resolving, createPending));

    it("uses the deadline in the workers' configuration", async () =>
      assertWorkersDeadlineCounts(resolving, await createPending()));
  });

  describe('past the deadline', () => {
    before(() => startStack(1_000));
    after(() => stack.stop());

    it('releases the money on the card with resolve --failed, and records who did it and why', async () => {
      const id = await createOverdue();
      assert.equal(await heldOnCard(), NEVER_FINISHES);
      const { code, json } = await resolve(id, '--failed', 'no such withdrawal, ticket 4711');
      assert.deepEqual(
        [code, json.id, json.status, json.failure_code, json.overdue_since, json.card_balance],
        [0, id, 'failed', 'operator_failed', null, CARD],
      );
      assert.equal(await heldOnCard(), 0);
      const detail = {
        partnerId: holder.partner.id,
        mode: 'live',
        cardId: holder.cardId,
        outcome: 'failed',
        reason: 'no such withdrawal, ticket 4711',
      };
      assert.deepEqual(await lastAudit(operate), {
        actor: ACTOR,
        action: 'withdrawal.resolve',
        subject: id,
        detail,
      });
      assert.equal((await withdrawalEvents(stack, holder)).at(-1).type, 'withdrawal.failed');
      const again = await resolve(id, '--succeeded');
      assert.equal(again.code, 1);
      assert.match(again.err, /has already failed/);
    });

    it('moves the money to the balance with resolve --succeeded', async () => {
      const { balance } = await readCard(holder);
      const id = await createOverdue();
      const { code, json } = await resolve(id, '--succeeded');
      assert.deepEqual([code, json.status, json.card_balance], [0, 'succeeded', balance - NEVER_FINISHES]);
      assert.equal((await readCard(holder)).balance, balance - NEVER_FINISHES);
      assert.equal(await heldOnCard(), 0);
      assert.equal((await withdrawalEvents(stack, holder)).at(-1).type, 'withdrawal.succeeded');
    });

    testPastDeadline(resolving);

    it('deletes a withdrawal whose request had no response yet with resolve --failed', () =>
      assertFailedUnanswered(resolving, stack.orm));

    it('sends the money of a blocked card to the balance with resolve --failed', async () => {
      const other = await cardholder(stack, 'live', 1_000_000);
      assert.equal((await topUp(other, 50_000)).status, 201);
      const { json } = await withdraw(other, NEVER_FINISHES);
      const block = await other.partner.call('POST', `/cards/${other.cardId}/block`, { mode: 'live' });
      assert.deepEqual([block.status, block.json.balance], [200, NEVER_FINISHES], block.text);
      await untilHolds(async () => {
        assert.ok((await operate('withdrawal', 'show', json.id)).json.overdue_since);
      });
      const resolved = await resolve(json.id, '--failed');
      assert.deepEqual([resolved.json?.status, resolved.json?.card_balance], ['failed', 0], resolved.err);
      const changes = await operate(
        'ledger',
        'transactions',
        other.partner.id,
        '--mode',
        'live',
        '--card',
        other.cardId,
      );
      const [last] = changes.json;
      assert.deepEqual([last.type, last.amount], ['card_release', NEVER_FINISHES]);
      assert.deepEqual((await operate('ledger', 'check')).json, []);
    });

    it('lists the withdrawals of a card and of a partner, with the requests that made them', async () => {
      const other = await cardholder(stack, 'live', 0);
      const made = [];
      for (const amount of [100, 200]) made.unshift((await withdraw(other, amount)).json);
      for (const whose of [
        ['--card', other.cardId],
        ['--partner', other.partner.id],
      ]) {
        const { code, json } = await operate('withdrawal', 'list', ...whose);
        assert.equal(code, 0);
        const ids = json.map(({ id, amount }: { id: string; amount: number }) => [id, amount]);
        assert.deepEqual(ids, [
          [made[0].id, 200],
          [made[1].id, 100],
        ]);
        for (const { request_id, idempotency_key } of json) assert.ok(request_id && idempotency_key);
        const next = await operate('withdrawal', 'list', ...whose, '--before', made[0].id);
        assert.deepEqual(
          next.json.map(({ id }: { id: string }) => id),
          [made[1].id],
        );
      }
      assert.equal((await operate('withdrawal', 'list')).code, 2);
    });
  });
});

import assert from 'node:assert/strict';
import { freePort } from '../../dev/free-port.ts';
import { query } from '../../platform/db/sql.ts';
import { claimOf } from '../support/claims.ts';
import { assertLedgerClean, balanceOf, balanceOfCard } from '../support/money.ts';
import { ACTOR, environmentOf, lastAudit, type Operate, operateIn } from '../support/operator/operate.ts';
import { type PendingOperation, RESOLVABLE, type Resolvable } from '../support/operator/resolving.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestStack } from '../support/stack.ts';
import { until, untilHolds } from '../support/until.ts';

const REASON = ['--reason', 'ticket 4711'];

for (const what of RESOLVABLE) {
  const { command } = what;

  describe(`operator ${command} resolve`, () => {
    let stack: TestStack;
    let operate: Operate;
    let pending: PendingOperation;
    before(async () => {
      stack = await sharedStack();
      operate = operateIn(environmentOf(stack.config));
    });
    beforeEach(async () => {
      pending = await what.begin(stack);
    });

    const show = async (id = pending.id) => (await operate(command, 'show', id)).json;
    const resolve = (outcome: string, id = pending.id) => operate(command, 'resolve', id, outcome, ...REASON);
    const isListed = async () => (await attentionTo(operate, pending.id)) !== undefined;
    const workflow = () => stack.client.workflow.getHandle(what.workflowIdOf(pending.id));

    it('refuses before the deadline, and for what there is not', async () => {
      const audited = await lastAudit(operate);
      for (const outcome of [what.success, '--failed']) {
        const early = await resolve(outcome);
        assert.deepEqual([early.code, early.out], [1, '']);
        assert.match(early.err, /is not past its deadline, \d{4}-.*Z/);
        const unknown = await resolve(outcome, what.unknownId);
        assert.deepEqual([unknown.code, unknown.out], [1, '']);
        assert.match(unknown.err, what.unknown);
      }
      assert.match((await operate(command, 'show', what.unknownId)).err, what.unknown);
      assert.deepEqual(await lastAudit(operate), audited);
      assert.equal((await show()).status, what.pending);
      assert.equal(await isListed(), false);
      assert.deepEqual(await heldBy(what, pending), what.held.cents);
    });

    for (const outcome of ['succeeded', 'failed'] as const) {
      for (const workflowIs of ['has not noticed the deadline', 'was terminated'] as const) {
        it(`moves the money as ${outcome}, once, if its workflow ${workflowIs}, with an event and an audit entry`, async () => {
          assert.equal(await heldBy(what, pending), what.held.cents);
          await makeOverdue(stack, what, pending);
          if (workflowIs === 'was terminated') {
            await workflow().terminate();
            assert.equal((await show()).workflow_status, 'terminated');
          }
          assert.match((await attentionTo(operate, pending.id)).reason, /its workflow has not noticed/);
          const { code, json, err } = await resolve(outcome === 'failed' ? '--failed' : what.success);
          assert.equal(code, 0, err);
          assert.deepEqual(
            [json.id, json.status, json.failure_code, json.overdue_since],
            outcome === 'failed'
              ? [pending.id, 'failed', 'operator_failed', null]
              : [pending.id, what.succeeded, null, null],
          );
          assert.equal(await heldBy(what, pending), 0);
          assert.equal(await balanceOfCard(stack.orm.em.fork(), pending.cardId), what.cardCents[outcome]);
          await assertLedgerClean(stack, pending.partner);
          assert.equal(await isListed(), false);
          const about = command === 'card' ? {} : { cardId: pending.cardId };
          const decided = outcome === 'failed' ? 'failed' : what.success.slice(2);
          assert.deepEqual(await lastAudit(operate), {
            actor: ACTOR,
            action: `${command}.resolve`,
            subject: pending.id,
            detail: {
              ...{ partnerId: pending.partner.id, mode: 'live', ...about },
              ...{ outcome: decided, reason: REASON[1] },
            },
          });
          assert.equal(await newestEvent(stack, pending), what.events[outcome]);
          for (const again of [what.success, '--failed']) {
            const refused = await resolve(again);
            assert.equal(refused.code, 1);
            assert.match(refused.err, what.isOver[outcome]);
          }
          assert.equal(await balanceOfCard(stack.orm.em.fork(), pending.cardId), what.cardCents[outcome]);
        });
      }
    }

    it('leaves nothing of what failed before its request had a response', async () => {
      await query(
        stack.orm.em.fork(),
        // The sweep of abandoned claims would answer it again.
        `UPDATE idempotency_claim SET response_status = NULL, response_body = NULL, sweep_after = 'infinity' WHERE id = $1`,
        [await claimOf(stack, pending.id)],
      );
      await makeOverdue(stack, what, pending);
      const { code, json } = await resolve('--failed');
      assert.deepEqual(
        [code, json.id, json.status, json.failure_code],
        [0, pending.id, 'failed', 'provider_declined'],
      );
      assert.equal((await operate(command, 'show', pending.id)).code, 1);
      assert.equal(await heldBy(what, pending), 0);
    });

    it("follows the deadline in the workers' configuration, not an operator's shorter one", async () => {
      const later = operateIn({ ...environmentOf(stack.config), [what.deadline]: '1ms' });
      const { code, out, err } = await later(command, 'resolve', pending.id, '--failed', ...REASON);
      assert.deepEqual([code, out], [1, '']);
      assert.match(err, /according to the worker's configuration it is not past its deadline/);
      const { status, overdue_since } = await show();
      assert.deepEqual([status, overdue_since], [what.pending, null]);
      assert.equal(await heldBy(what, pending), what.held.cents);
    });
  });
}

describe('operator attention list', () => {
  it('has what is past its deadline with the commands that resolve it, until one has', async () => {
    const stack = await sharedStack('deadlines');
    const operate = operateIn(environmentOf(stack.config));
    const begun = await Promise.all(RESOLVABLE.map(async (what) => [what, await what.begin(stack)] as const));
    for (const [what, { id, partner }] of begun) {
      const { command, success } = what;
      // It is listed before its workflow has noticed, with another reason.
      await untilHolds(async () => {
        const { json: shown } = await operate(command, 'show', id);
        assert.equal(shown.status, what.pending);
        const { at_issuer: atIssuer, ...item } = await attentionTo(operate, id);
        const namesCard = what.kind === 'card_issuance' ? '' : ', card \\S+';
        assert.match(atIssuer, new RegExp(`^at the issuer: \\d+ cents, token ${id}${namesCard}$`));
        assert.deepEqual(item, {
          kind: what.kind,
          id,
          mode: 'live',
          since: shown.overdue_since,
          reason: `the network has not said ${what.waitsFor}`,
          partner_id: partner.id,
          partner_name: 'Test Partner',
          command: `npm run operator -- ${command} resolve ${id} ${success} --reason "…"`,
          or_command: `npm run operator -- ${command} resolve ${id} --failed --reason "…"`,
          workflow_id: what.workflowIdOf(id),
        });
      });
      const { code, err } = await operate(command, 'resolve', id, '--failed', ...REASON);
      assert.equal(code, 0, err);
      assert.equal(await attentionTo(operate, id), undefined);
    }
  });
});

describe('operator resolve', () => {
  let stack: TestStack;
  let operate: Operate;
  before(async () => {
    stack = await sharedStack();
    operate = operateIn(environmentOf(stack.config));
  });

  async function begin(): Promise<PendingOperation> {
    const [issuance = assert.fail()] = RESOLVABLE;
    const pending = await issuance.begin(stack);
    await makeOverdue(stack, issuance, pending);
    return pending;
  }

  it('says whether a worker is there to apply what is recorded, which one then does', async () => {
    const { id } = await begin();
    const workflow = stack.client.workflow.getHandle(`issue-card/${id}`);
    const resolveIn = (env: NodeJS.ProcessEnv) =>
      operateIn({ ...environmentOf(stack.config), ...env }, 0)('card', 'resolve', id, '--failed', ...REASON);
    await workflow.terminate();
    // Its workflow starts again where nobody works.
    const none = await resolveIn({ TASK_QUEUE_PREFIX: 'where-nobody-works-' });
    assert.deepEqual([none.code, none.out], [1, '']);
    const next = `Then look again with "operator card show ${id}"`;
    assert.match(none.err, new RegExp(`: check that a worker is running\\. ${next}`));
    const { reason } = await attentionTo(operate, id);
    assert.match(reason, /^an operator decided that it is failed, but no worker has applied that yet: /);
    await workflow.terminate();
    const some = await resolveIn({});
    assert.match(some.err, new RegExp(`: a worker is running, so see its log for the reason\\. ${next}`));
    await until('it is applied', async () => (await operate('card', 'show', id)).json.status === 'failed');
  });

  it('records nothing without Temporal', async () => {
    const { id } = await begin();
    const audited = await lastAudit(operate);
    const address = `127.0.0.1:${await freePort()}`;
    for (const [given, named] of [
      [address, `Temporal does not respond at ${address}`],
      ['', 'TEMPORAL_ADDRESS: is required'],
    ] as const) {
      const cut = operateIn({ ...environmentOf(stack.config), TEMPORAL_ADDRESS: given });
      const { code, out, err } = await cut('card', 'resolve', id, '--failed', ...REASON);
      assert.deepEqual([code, out], [1, '']);
      assert.ok(err.includes(named), err);
    }
    assert.deepEqual(await lastAudit(operate), audited);
  });
});

/** As if it had begun 25 hours ago. */
const makeOverdue = (stack: TestStack, { command }: Resolvable, { id }: PendingOperation) =>
  asOwner(
    stack,
    `UPDATE ${command === 'card' ? 'card' : 'card_transfer'} SET created_at = created_at - interval '25 hours' WHERE id = $1`,
    [id],
  );

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever the contract promises.
async function attentionTo(operate: Operate, id: string): Promise<any> {
  return (await operate('attention', 'list')).json.find((item: { id: string }) => item.id === id);
}

/** What the operation holds of the account's balance or of the card's, in cents. */
async function heldBy(
  { held }: Resolvable,
  { partner, cardId }: PendingOperation,
): Promise<number | undefined> {
  if (held.of === 'account') return (await balanceOf(partner, 'live'))[1];
  const { json } = await partner.call('GET', `/cards/${cardId}`, { mode: 'live' });
  return json.balance - json.available_balance;
}

async function newestEvent(stack: TestStack, { partner }: PendingOperation): Promise<string | undefined> {
  const [row] = await asOwner<{ type: string }>(
    stack,
    `SELECT type FROM event WHERE partner_id = $1 ORDER BY id DESC LIMIT 1`,
    [partner.id],
  );
  return row?.type;
}

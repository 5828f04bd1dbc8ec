import assert from 'node:assert/strict';
import { freePort } from '../../dev/free-port.ts';
import { query } from '../../platform/db/sql.ts';
import { claimOf } from '../support/claims.ts';
import { assertLedgerClean } from '../support/money.ts';
import {
  age,
  assertMoney,
  ISSUANCE,
  NEVER_FINISHES,
  OPERATION_KINDS,
  rowOf,
  type Stuck,
  stuck,
  typesAbout,
} from '../support/operation-kinds.ts';
import { ACTOR, environmentOf, lastAudit, type Operate, operateIn } from '../support/operator/operate.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestStack } from '../support/stack.ts';
import { until, untilHolds } from '../support/until.ts';

const REASON = ['--reason', 'ticket 4711'];
/** What operators are told of each, beside its own names. */
const SAID = {
  card: {
    unknownId: 'card_01k0000000000000000000000a',
    unknown: /^There is no card card_01k0000000000000000000000a: .*GET \/v1\/cards/,
    isOver: { succeeded: /is over and the card is active/, failed: /is over and the card is failed/ },
    listed: 'card_issuance',
    waitsFor: 'whether it issued the card',
  },
  topup: {
    unknownId: 'topup_01k0000000000000000000000a',
    unknown: /^There is no top-up topup_01k0000000000000000000000a: .*topups/,
    isOver: { succeeded: /has already succeeded/, failed: /has already failed/ },
    listed: 'card_topup',
    waitsFor: 'whether it loaded the card',
  },
  withdrawal: {
    unknownId: 'wdr_01k0000000000000000000000a',
    unknown: /^There is no withdrawal wdr_01k0000000000000000000000a: .*withdrawals/,
    isOver: { succeeded: /has already succeeded/, failed: /has already failed/ },
    listed: 'card_withdrawal',
    waitsFor: 'whether it took the money off the card',
  },
};

for (const kind of OPERATION_KINDS) {
  const { object: command, statuses, yes } = kind;
  const { unknownId, unknown, isOver } = SAID[command];

  describe(`operator ${command} resolve`, () => {
    let stack: TestStack;
    let operate: Operate;
    let pending: Stuck;
    before(async () => {
      stack = await sharedStack();
      operate = operateIn(environmentOf(stack.config));
    });
    beforeEach(async () => {
      pending = await stuck(stack, kind);
    });

    const show = async (id = pending.id) => (await operate(command, 'show', id)).json;
    const resolve = (outcome: string, id = pending.id) => operate(command, 'resolve', id, outcome, ...REASON);
    const isListed = async () => (await attentionTo(operate, pending.id)) !== undefined;

    it('refuses before the deadline, and for what there is not', async () => {
      const audited = await lastAudit(operate);
      for (const outcome of [`--${yes}`, '--failed']) {
        const early = await resolve(outcome);
        assert.deepEqual([early.code, early.out], [1, '']);
        assert.match(early.err, /is not past its deadline, \d{4}-.*Z/);
        const none = await resolve(outcome, unknownId);
        assert.deepEqual([none.code, none.out], [1, '']);
        assert.match(none.err, unknown);
      }
      assert.match((await operate(command, 'show', unknownId)).err, unknown);
      assert.deepEqual(await lastAudit(operate), audited);
      assert.equal((await show()).status, statuses.pending);
      assert.equal(await isListed(), false);
      await assertMoney(pending, 'pending', NEVER_FINISHES);
    });

    for (const outcome of ['succeeded', 'failed'] as const) {
      for (const workflowIs of ['has not noticed the deadline', 'was terminated'] as const) {
        it(`moves the money as ${outcome}, once, if its workflow ${workflowIs}, with an event and an audit entry`, async () => {
          await age(pending);
          if (workflowIs === 'was terminated') {
            await pending.workflow.terminate();
            assert.equal((await show()).workflow_status, 'terminated');
          }
          assert.match((await attentionTo(operate, pending.id)).reason, /its workflow has not noticed/);
          const decided = outcome === 'failed' ? 'failed' : yes;
          const { code, json, err } = await resolve(`--${decided}`);
          assert.equal(code, 0, err);
          assert.deepEqual(
            [json.id, json.status, json.failure_code, json.overdue_since],
            outcome === 'failed'
              ? [pending.id, 'failed', 'operator_failed', null]
              : [pending.id, statuses.succeeded, null, null],
          );
          const cardId = kind === ISSUANCE ? pending.id : pending.cardId;
          const moved = () => assertMoney({ ...pending, cardId }, outcome, NEVER_FINISHES);
          await moved();
          await assertLedgerClean(stack, pending.partner);
          assert.equal(await isListed(), false);
          const about = { partnerId: pending.partner.id, mode: 'live', ...(kind !== ISSUANCE && { cardId }) };
          assert.deepEqual(await lastAudit(operate), {
            actor: ACTOR,
            action: `${command}.resolve`,
            subject: pending.id,
            detail: { ...about, outcome: decided, reason: REASON[1] },
          });
          assert.deepEqual(await typesAbout(pending), [kind.events[outcome]]);
          for (const again of [`--${yes}`, '--failed']) {
            const refused = await resolve(again);
            assert.equal(refused.code, 1);
            assert.match(refused.err, isOver[outcome]);
          }
          await moved();
        });
      }
    }

    it('leaves nothing of what failed before its request had a response', async () => {
      await query(
        stack.orm.em.fork(),
        // The sweep of abandoned claims would answer it again.
        `UPDATE idempotency_claim SET response_status = NULL, response_body = NULL,
           sweep_after = now() + interval '50 minutes' WHERE id = $1`,
        [await claimOf(stack, pending.id)],
      );
      await age(pending);
      const { code, json } = await resolve('--failed');
      assert.deepEqual(
        [code, json.id, json.status, json.failure_code],
        [0, pending.id, 'failed', 'provider_declined'],
      );
      assert.equal((await operate(command, 'show', pending.id)).code, 1);
      await assertMoney(pending, 'nothing');
    });

    it("follows the deadline in the workers' configuration, not an operator's shorter one", async () => {
      const later = operateIn({ ...environmentOf(stack.config), [kind.deadline]: '1ms' });
      const { code, out, err } = await later(command, 'resolve', pending.id, '--failed', ...REASON);
      assert.deepEqual([code, out], [1, '']);
      assert.match(err, /according to the worker's configuration it is not past its deadline/);
      const { status, overdue_since } = (await rowOf(pending)) ?? {};
      assert.deepEqual([status, overdue_since], [statuses.pending, null]);
      await assertMoney(pending, 'pending', NEVER_FINISHES);
    });
  });
}

describe('operator attention list', () => {
  it('has what is past its deadline with the commands that resolve it, until one has', async () => {
    const stack = await sharedStack('deadlines');
    const operate = operateIn(environmentOf(stack.config));
    const begun = await Promise.all(OPERATION_KINDS.map((kind) => stuck(stack, kind)));
    for (const { kind, id, partner } of begun) {
      const { object: command, statuses, yes, workflow } = kind;
      const { listed, waitsFor } = SAID[command];
      // It is listed before its workflow has noticed, with another reason.
      await untilHolds(async () => {
        const { json: shown } = await operate(command, 'show', id);
        assert.equal(shown.status, statuses.pending);
        const { at_issuer: atIssuer, ...item } = await attentionTo(operate, id);
        const namesCard = kind === ISSUANCE ? '' : ', card \\S+';
        assert.match(atIssuer, new RegExp(`^at the issuer: \\d+ cents, token ${id}${namesCard}$`));
        assert.deepEqual(item, {
          kind: listed,
          id,
          mode: 'live',
          since: shown.overdue_since,
          reason: `the network has not said ${waitsFor}`,
          partner_id: partner.id,
          partner_name: 'Test Partner',
          command: `npm run operator -- ${command} resolve ${id} --${yes} --reason "…"`,
          or_command: `npm run operator -- ${command} resolve ${id} --failed --reason "…"`,
          workflow_id: workflow.idOf(id),
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

  async function begin(): Promise<Stuck> {
    const pending = await stuck(stack, ISSUANCE);
    await age(pending);
    return pending;
  }

  it('says whether a worker is there to apply what is recorded, which one then does', async () => {
    const { id, workflow } = await begin();
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

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever the contract promises.
async function attentionTo(operate: Operate, id: string): Promise<any> {
  return (await operate('attention', 'list')).json.find((item: { id: string }) => item.id === id);
}

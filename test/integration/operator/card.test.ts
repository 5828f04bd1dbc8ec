import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { freePort } from '../../../dev/free-port.ts';
import { issueCardWorkflowId } from '../../../workflows/messages.ts';
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
import { asOwner } from '../../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { untilHolds } from '../../support/until.ts';

const HELD = NEVER_FINISHES + 100 + 201;
const CARD: Resolvable = {
  ...{ command: 'card', success: '--issued', pending: 'funding_pending', succeeded: 'active' },
  ...{ deadline: 'ISSUANCE_DEADLINE', workflowIdOf: issueCardWorkflowId },
  ...{ kind: 'card_issuance', waitsFor: 'whether it issued the card' },
  unknownId: 'card_01k0000000000000000000000a',
  unknown: (id) => new RegExp(`^There is no card ${id}: .*GET /v1/cards`),
};
const CARDHOLDER = {
  card_name: 'Travel',
  cardholder_first_name: 'Ada',
  cardholder_last_name: 'Lovelace',
  email: 'ada@example.com',
};

describe('operator card', () => {
  let stack: TestStack;
  let operate: Operate;
  let partner: TestPartner;

  async function startStack(issuanceDeadlineMs: number): Promise<void> {
    stack = await startTestStack({ issuanceDeadlineMs }, { hosted: false });
    operate = operateIn(environmentOf(stack.config));
    partner = await stack.createPartner();
    await operate(
      'partner',
      'adjust',
      partner.id,
      '--mode',
      'live',
      '--amount',
      '1000000',
      '--reason',
      'funds',
    );
  }

  async function createCard(amount: number): Promise<string> {
    const metadata = { order: 'of Ada', 'a note': CARDHOLDER.email };
    const body = { amount, external_ref: randomUUID(), ...CARDHOLDER, metadata };
    const { json } = await partner.call('POST', '/cards', {
      mode: 'live',
      body,
      idempotencyKey: randomUUID(),
    });
    return json.id;
  }

  const createPending = () => createCard(NEVER_FINISHES);
  const resolving = resolvingIn(CARD, () => ({ stack, operate, partnerId: partner.id, createPending }));
  const { resolve, held, createOverdue } = resolving;

  describe('before the deadline', () => {
    let pending: string;

    before(async () => {
      await startStack(24 * 3_600_000);
      pending = await createPending();
    });

    after(() => stack.stop());

    it('lists cards newest first, page by page, by partner, external_ref and status', async () => {
      const other = await stack.createPartner('Other Ltd');
      await operate(
        ...['partner', 'adjust', other.id, '--mode', 'test', '--amount', '100000', '--reason', 'funds'],
      );
      const made: { id: string; external_ref: string }[] = [];
      for (const amount of [1_000, 2_000, 3_000]) {
        const metadata = { order: 'of Ada', 'a note': CARDHOLDER.email };
        const body = { amount, external_ref: randomUUID(), ...CARDHOLDER, metadata };
        made.push((await other.call('POST', '/cards', { body, idempotencyKey: randomUUID() })).json);
      }
      const [first, second, third] = made.map(({ id }) => id);
      const list = async (...flags: string[]) => {
        const { code, json, out, err } = await operate('card', 'list', ...flags);
        assert.equal(code, 0, err);
        for (const personal of Object.values(CARDHOLDER)) assert.ok(!out.includes(personal));
        return { ids: json.map(({ id }: { id: string }) => id), json, err };
      };
      const of = ['--partner', other.id];
      assert.deepEqual((await list(...of)).ids, [third, second, first]);
      assert.deepEqual((await list()).ids.slice(0, 3), [third, second, first]);
      const page = await list(...of, '--limit', '2');
      assert.deepEqual(page.ids, [third, second]);
      assert.match(page.err, new RegExp(`--before ${second} shows the next ones`));
      assert.deepEqual((await list(...of, '--before', second ?? '')).ids, [first]);
      const ref = ['--external-ref', made[1]?.external_ref ?? ''];
      for (const flags of [ref, [...ref, ...of], [...ref, '--status', 'active']])
        assert.deepEqual((await list(...flags)).ids, [second]);
      assert.deepEqual((await list(...ref, '--status', 'blocked')).ids, []);
      assert.deepEqual((await list(...of, '--status', 'active')).ids, [third, second, first]);
      assert.deepEqual((await list('--status', 'active', '--limit', '1')).ids, [third]);
      assert.ok((await list('--status', 'funding_pending')).ids.includes(pending));
      const [row] = (await list(...of)).json;
      assert.deepEqual([row.partner_name, row.mode, row.funding], ['Other Ltd', 'test', 3_000]);
      assert.equal((await operate('card', 'list', '--before', 'nonsense')).code, 2);
      assert.equal((await operate('card', 'list', '--partner', 'prt_nobody')).code, 1);
    });

    it('shows the card, its money and its workflow, but not the cardholder', async () => {
      const issued = await createCard(10_000);
      await untilHolds(async () => {
        const { code, json, out } = await operate('card', 'show', issued);
        assert.deepEqual(
          { code, json },
          {
            code: 0,
            json: {
              id: issued,
              object: 'card',
              partner_id: partner.id,
              partner_name: 'Test Partner',
              mode: 'live',
              status: 'active',
              balance: 10_000,
              available_balance: 10_000,
              currency: 'USD',
              funding: 10_000,
              fees: [
                { type: 'card_activation', amount: 100 },
                { type: 'card_funding', amount: 200 },
              ],
              external_ref: json.external_ref,
              metadata_keys: ['a note', 'order'],
              spending_controls: null,
              spending_limits: [],
              cardholder_erased_at: null,
              product_code: 'TEST-USD',
              network: 'visa',
              network_card_id: json.network_card_id,
              last4: json.last4,
              exp_month: json.exp_month,
              exp_year: json.exp_year,
              failure_code: null,
              overdue_since: null,
              status_change: null,
              request: json.request,
              pending_authorizations: [],
              topups: [],
              withdrawals: [],
              created: json.created,
              workflow_id: `issue-card/${issued}`,
              waiting: null,
              workflow_status: 'completed',
            },
          },
        );
        assert.match(json.last4, /^\d{4}$/);
        assert.equal(json.request.client_address, '127.0.0.1');
        for (const personal of Object.values(CARDHOLDER)) assert.ok(!out.includes(personal));
      });
      const { json } = await operate('card', 'show', pending);
      assert.deepEqual(
        [json.status, json.balance, json.last4, json.workflow_status],
        ['funding_pending', 0, null, 'running'],
      );
      const { deadline, asked, last_answer, last_asked_at, next_poll_at } = json.waiting;
      assert.equal(Date.parse(deadline) - Date.parse(json.created), stack.config.issuanceDeadlineMs);
      // A deadline that was changed since applies to operations in progress.
      const changed = (await resolving.later('card', 'show', pending)).json.waiting.deadline;
      assert.equal(Date.parse(changed) - Date.parse(json.created), 1);
      assert.ok(asked >= 1);
      assert.equal(last_answer, 'accepted');
      assert.ok(last_asked_at < next_poll_at);
    });

    testBeforeDeadline(resolving, () => pending);

    it('ignores a signal that is sent by hand', async () => {
      await stack.client.workflow
        .getHandle(issueCardWorkflowId(pending))
        .signal('resolve', { outcome: 'failed' });
      // The workflow polls the network in between; were the signal taken, the poll would not come.
      const polled = await stack.client.workflow.getHandle(issueCardWorkflowId(pending)).fetchHistory();
      await untilHolds(async () => {
        const now = await stack.client.workflow.getHandle(issueCardWorkflowId(pending)).fetchHistory();
        assert.ok((now.events?.length ?? 0) > (polled.events?.length ?? 0) + 6);
      });
      assert.equal((await operate('card', 'show', pending)).json.status, 'funding_pending');
    });

    it('refuses to resolve a card that is not pending', async () => {
      const issued = await createCard(10_000);
      const { code, err } = await resolve(issued, '--failed');
      assert.equal(code, 1);
      assert.match(err, /is over and the card is active/);
    });

    it('refuses an unknown card', () => assertUnknownIsSaid(resolving));

    it('resolves even if the workflow has not noticed the deadline, or is gone', async () => {
      const [item] = (await resolving.later('attention', 'list')).json.filter(
        (one: { id: string }) => one.id === pending,
      );
      assert.match(
        item.reason,
        /its workflow has not noticed: it was terminated, or began with a longer deadline/,
      );
      await assertResolvedUnnoticed(resolving, createPending);
    });

    it("uses the deadline in the workers' configuration", async () =>
      assertWorkersDeadlineCounts(resolving, await createPending()));

    it("shows all but the workflow's status without Temporal, and resolves nothing", async () => {
      const env = environmentOf(stack.config);
      const address = `127.0.0.1:${await freePort()}`;
      const cut = operateIn({ ...env, TEMPORAL_ADDRESS: address });
      const shown = await cut('card', 'show', pending);
      assert.deepEqual([shown.code, shown.json.id, shown.json.workflow_status], [0, pending, null]);
      assert.ok(shown.err.includes(`Temporal does not respond at ${address}`));
      const audited = await lastAudit(operate);
      const resolved = await cut('card', 'resolve', pending, '--failed', '--reason', 'r');
      assert.deepEqual([resolved.code, resolved.out], [1, '']);
      assert.ok(resolved.err.includes(`Temporal does not respond at ${address}`));
      assert.deepEqual(await lastAudit(operate), audited);
      const unknown = await operateIn({ ...env, TEMPORAL_ADDRESS: '' })(
        'card',
        'resolve',
        pending,
        '--failed',
        '--reason',
        'r',
      );
      assert.match(unknown.err, /TEMPORAL_ADDRESS: is required/);
    });
  });

  describe('past the deadline', () => {
    before(() => startStack(1_000));

    after(() => stack.stop());

    it('releases the money with resolve --failed, and records who did it and why', async () => {
      const id = await createOverdue();
      assert.equal(await held(), HELD);
      const { code, json } = await resolve(id, '--failed', 'no such card, ticket 4711');
      assert.deepEqual(
        [code, json.id, json.status, json.failure_code, json.overdue_since],
        [0, id, 'failed', 'operator_failed', null],
      );
      assert.equal(await held(), 0);
      assert.deepEqual(await lastAudit(operate), {
        actor: ACTOR,
        action: 'card.resolve',
        subject: id,
        detail: {
          partnerId: partner.id,
          mode: 'live',
          outcome: 'failed',
          reason: 'no such card, ticket 4711',
        },
      });
      const again = await resolve(id, '--issued');
      assert.equal(again.code, 1);
      assert.match(again.err, /is over and the card is failed/);
    });

    it('makes the card active with resolve --issued', async () => {
      const id = await createOverdue();
      const { code, json } = await resolve(id, '--issued');
      assert.deepEqual([code, json.status, json.balance], [0, 'active', NEVER_FINISHES]);
      assert.equal(await held(), 0);
    });

    testPastDeadline(resolving);

    it('deletes a card whose request had no response yet with resolve --failed, and answers the request with 402', () =>
      assertFailedUnanswered(resolving, stack.orm));

    it('refuses to resolve once a longer deadline is configured, and the card leaves the list', async () => {
      const id = await createOverdue();
      // As seen from a deadline of an hour.
      const move = (sign: '+' | '-') =>
        asOwner(stack, `UPDATE card SET created_at = created_at ${sign} interval '1 hour' WHERE id = $1`, [
          id,
        ]);
      await move('+');
      const { code, err } = await resolve(id, '--failed');
      assert.equal(code, 1);
      assert.match(err, /according to the worker's configuration it is not past its deadline/);
      assert.deepEqual(await resolving.attention(), []);
      await move('-');
      const again = await resolving.later('card', 'resolve', id, '--failed', '--reason', 'r');
      assert.equal(again.code, 0, again.err);
    });

    it('says if no worker is running, and a worker applies the decision later', async () => {
      const id = await createOverdue();
      await stack.stopWorker();
      const resolveWith = (env: NodeJS.ProcessEnv) =>
        operateIn(
          { ...environmentOf(stack.config), ...env },
          500,
        )(...['card', 'resolve', id, '--failed', '--reason', 'r']);
      const next = `Then look again with "operator card show ${id}"`;
      const { code, out, err } = await resolveWith({ TASK_QUEUE_PREFIX: 'where-nobody-works-' });
      assert.deepEqual({ code, out }, { code: 1, out: '' });
      assert.match(err, new RegExp(`: check that a worker is running\\. ${next}`));
      // Temporal takes two minutes to forget the worker.
      const again = await resolveWith({});
      assert.match(again.err, new RegExp(`: a worker is running, so see its log for the reason\\. ${next}`));
      const [item] = await resolving.attention();
      assert.deepEqual([item.id, item.reason.split(',')[0]], [id, 'an operator decided that it is failed']);
      await stack.startWorker();
      await untilHolds(async () => {
        assert.equal((await operate('card', 'show', id)).json.status, 'failed');
      });
    });
  });
});

import assert from 'node:assert/strict';
import type { WorkflowHandle } from '@temporalio/client';
import { beginScan } from '../../deposits/chain-scan.ts';
import type { DepositDecision } from '../../domain/deposit.ts';
import { notifyDeposits } from '../../platform/db/notifications.ts';
import { query } from '../../platform/db/sql.ts';
import { resolveDepositSignal, watchDepositWorkflowId } from '../../workflows/messages.ts';
import { takeNextBlock } from '../support/deposits/next-block.ts';
import { depositEvents, pay, readDepositState } from '../support/deposits/payments.ts';
import { seedDeposit } from '../support/deposits/seed-deposits.ts';
import { assertLedgerClean } from '../support/money.ts';
import { environmentOf, operateIn } from '../support/operator/operate.ts';
import { asOwner } from '../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';
import { detailsOf, skipTime, untilStarted } from '../support/workflows.ts';

const HOUR_MS = 3_600_000;
/** Past the expiry of every deposit here. */
const NINE_HOURS_ON = () => new Date(Date.now() + 9 * HOUR_MS);
const CREDIT: DepositDecision = { outcome: 'credited', reason: 'seen on the chain, ticket 7' };
const RETURNED: DepositDecision = { outcome: 'returned', reason: 'sent back, ticket 8' };

/** Without nodes: each test says what the scan has found, and the worker does the rest. */
describe('the workflow that watches a deposit', () => {
  let stack: TestStack;
  let partner: TestPartner;
  /** Looks at deposits wait for this. */
  let mayLook: Promise<void> | undefined;
  /** Of the next decision's activity: what comes between its end and the word of it. */
  let loseWordOf: (() => Promise<void>) | undefined;

  before(async () => {
    stack = await startTestStack({}, { worker: false });
    await startWorker();
    partner = await stack.createPartner();
    await beginScan(stack.orm, 'private', { number: 100, hash: null, time: new Date() });
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stack.stop();
  });

  const startWorker = () =>
    stack.startWorker({
      around: {
        depositActivities: (activities) => ({
          ...activities,
          async readDeposit(...asked) {
            await mayLook;
            return activities.readDeposit(...asked);
          },
          async resolveDepositByHand(depositId, decision) {
            const verdict = await activities.resolveDepositByHand(depositId, decision);
            const lose = loseWordOf;
            loseWordOf = undefined;
            if (lose === undefined) return verdict;
            await lose();
            throw new Error('nobody hears of it, in a test');
          },
        }),
      },
    });

  interface Watched {
    id: string;
    workflow: WorkflowHandle;
    /** A payment in a block of now, found and judged. */
    receive(usdt: string): Promise<void>;
    state(): ReturnType<typeof readDepositState>;
  }

  /** A deposit of 25.00 USDT whose workflow runs. */
  async function watched(): Promise<Watched> {
    const id = await seedDeposit(stack, partner.id);
    await notifyDeposits(stack.orm);
    const workflow = stack.client.workflow.getHandle(watchDepositWorkflowId(id));
    await untilStarted(workflow);
    await untilSaid(workflow, 'Waiting for one payment of exactly 25.00 USDT');
    return {
      id,
      workflow,
      receive: async (usdt) => {
        await pay(stack.orm, id, { usdt });
        await notifyDeposits(stack.orm);
      },
      state: () => readDepositState(stack.orm, id),
    };
  }

  async function inReview(usdt = '10'): Promise<Watched> {
    const one = await watched();
    await one.receive(usdt);
    await untilSaid(one.workflow, '**Waiting for an operator.**');
    return one;
  }

  /** The scan takes a block of this time, with nothing of ours in it. */
  async function scanUpTo(time: Date): Promise<void> {
    await takeNextBlock(stack.orm, [], time);
    await notifyDeposits(stack.orm);
  }

  /** Without the title, which every text has. */
  async function details(workflow: WorkflowHandle): Promise<string> {
    const [title, ...rest] = (await detailsOf(workflow)).split('\n\n');
    assert.match(title ?? '', /^Deposit dep_\w+ of 25\.00 USDT on private\.$/);
    return rest.join('\n\n');
  }
  async function untilSaid(workflow: WorkflowHandle, words: string): Promise<string> {
    await until(`its details say "${words}"`, async () => (await detailsOf(workflow)).includes(words));
    return details(workflow);
  }
  const attribute = async (workflow: WorkflowHandle, name: string): Promise<unknown> =>
    (await workflow.describe()).searchAttributes[name]?.[0];
  const audited = async ({ id }: Watched) =>
    query<{ actor: string; outcome: string; reason: string }>(
      stack.orm.em.fork(),
      `SELECT actor, detail ->> 'outcome' AS outcome, detail ->> 'reason' AS reason FROM audit_entry
       WHERE subject = $1 ORDER BY id`,
      [id],
    );
  const credited = async (): Promise<number> => {
    const operate = operateIn(environmentOf(stack.config));
    return (await operate('ledger', 'balance', partner.id, '--mode', 'live')).json.total;
  };

  it('can be found by its partner and its deposit, ends when the payment is credited, and runs again for another', async () => {
    const { id, workflow, receive, state } = await watched();
    assert.equal(await attribute(workflow, 'DepositId'), id);
    assert.equal(await attribute(workflow, 'PartnerId'), partner.id);
    assert.equal(await attribute(workflow, 'Mode'), 'live');
    assert.match((await (await workflow.describe()).staticSummary()) ?? '', new RegExp(id));
    await receive('25');
    await workflow.result();
    assert.match(await details(workflow), /^Confirmed: 25\.00 USD were credited/);
    assert.equal(await attribute(workflow, 'NeedsAttention'), undefined);
    await receive('25');
    await untilSaid(workflow, '**Waiting for an operator.**');
    assert.equal(await attribute(workflow, 'NeedsAttention'), true);
    await workflow.signal(resolveDepositSignal, CREDIT);
    await workflow.result();
    const { status, creditedCents } = await state();
    assert.deepEqual([status, creditedCents], ['confirmed', 5_000]);
  });

  it('waits eight hours, and then until the scan has passed that time', async () => {
    const { id, workflow, state } = await watched();
    await skipTime(workflow, 8 * HOUR_MS + 60_000);
    const said = await untilSaid(workflow, 'the deposit expires once the scan passes its deadline');
    assert.match(said, /`npm run operator -- tron status`/);
    await scanUpTo(new Date());
    assert.equal((await state()).status, 'awaiting_payment');
    await scanUpTo(NINE_HOURS_ON());
    await workflow.result();
    assert.equal((await state()).status, 'expired');
    assert.match(await details(workflow), /^Expired at .* without a payment/);
    assert.deepEqual(await depositEvents(stack.orm, id), [['deposit.expired', 'expired', 0]]);
    // Other deposits are not late.
    await scanUpTo(new Date());
  });

  it('is notified once before it has looked, however often its deposit changes', async () => {
    const { promise, resolve: look } = Promise.withResolvers<void>();
    mayLook = promise;
    const begin = async () => {
      const id = await seedDeposit(stack, partner.id);
      await notifyDeposits(stack.orm);
      const workflow = stack.client.workflow.getHandle(watchDepositWorkflowId(id));
      await untilStarted(workflow);
      return { id, workflow };
    };
    const { id, workflow } = await begin();
    for (let change = 0; change < 3; change++) {
      await asOwner(stack, 'UPDATE deposit SET version = version + 1, changed_at = now() WHERE id = $1', [
        id,
      ]);
      // It is notified after the deposit before it, of the same account.
      await begin();
    }
    const { events } = await workflow.fetchHistory();
    const signals = (events ?? []).filter((event) => event.workflowExecutionSignaledEventAttributes);
    assert.equal(signals.length, 1);
    mayLook = undefined;
    look();
    await until('it has seen the last change', async () => {
      const [row] = await asOwner<{ seen: boolean }>(
        stack,
        'SELECT told_version = version AS seen FROM deposit WHERE id = $1',
        [id],
      );
      return row?.seen;
    });
  });

  it('looks at the row by itself if nobody informs it', async () => {
    const { id, workflow } = await watched();
    await query(
      stack.orm.em.fork(),
      `UPDATE deposit SET status = 'expired', version = version + 1, told_version = version + 1 WHERE id = $1`,
      [id],
    );
    await skipTime(workflow, 9 * HOUR_MS);
    await workflow.result();
    assert.match(await details(workflow), /^Expired/);
  });

  it('ends as credited for a payment in time that was found after its deadline', async () => {
    const { workflow, receive, state } = await watched();
    await skipTime(workflow, 8 * HOUR_MS + 60_000);
    await untilSaid(workflow, 'the deposit expires once the scan passes its deadline');
    await receive('25');
    await workflow.result();
    assert.equal((await state()).status, 'confirmed');
  });

  it('shows payments in review, and credits them on a signal', async () => {
    const one = await inReview('10.005');
    const { id, workflow } = one;
    const before = await credited();
    const said = await details(workflow);
    assert.match(said, /10\.005 USDT, transaction [0-9a-f]{64} in block \d+: not the exact amount/);
    assert.match(said, /to add 10\.00 USD to the balance/);
    assert.ok(
      said.includes(`npm run operator -- deposit resolve ${id} --credit --if-version 2 --reason "…"`),
      said,
    );
    assert.equal(await attribute(workflow, 'NeedsAttention'), true);
    const [payload = ''] = /\{"outcome": "credited".*?\}/.exec(said) ?? [];
    await workflow.signal('resolve', JSON.parse(payload.replace('…', CREDIT.reason)));
    await workflow.result();
    assert.equal(await attribute(workflow, 'NeedsAttention'), false);
    assert.deepEqual(await one.state(), {
      ...{ status: 'confirmed', version: 3, creditedCents: 1_000, payments: ['credited'] },
    });
    assert.equal(await credited(), before + 1_000);
    assert.deepEqual(await audited(one), [{ actor: 'temporal', ...CREDIT }]);
    const [sent] = await query<{ identity: string }>(
      stack.orm.em.fork(),
      `SELECT detail ->> 'identity' AS identity FROM audit_entry WHERE subject = $1`,
      [id],
    );
    assert.equal(sent?.identity, stack.client.options.identity);
    assert.deepEqual(
      (await depositEvents(stack.orm, id)).map(([type]) => type),
      ['deposit.needs_review', 'deposit.confirmed'],
    );
  });

  it('ignores signals that are not a decision, and says so', async () => {
    const { workflow, state } = await inReview();
    const before = await state();
    for (const sent of [
      ...[undefined, null, 'credited', 7, [], {}],
      ...[{ outcome: 'credited' }, { outcome: 'issued', reason: 'r' }],
      ...[7, 'x'.repeat(100_000)].map((reason) => ({ outcome: 'credited', reason })),
    ])
      await workflow.signal('resolve', sent);
    await untilSaid(workflow, 'and changed nothing: it has to be');
    for (const reason of ['', ' \u0000', 'a\nb', '\ud800', 'x'.repeat(501)]) {
      await workflow.signal('resolve', { outcome: 'credited', reason });
    }
    await untilSaid(workflow, 'and changed nothing: its reason must be 1 to 500 characters');
    await workflow.signal('nonsense', 1);
    assert.deepEqual(await state(), before);
    await workflow.signal(resolveDepositSignal, CREDIT);
    await workflow.result();
    assert.equal((await state()).status, 'confirmed');
  });

  it('does not decide on a payment that it did not show', async () => {
    const one = await inReview();
    await stack.stopWorker();
    await pay(stack.orm, one.id, { blockTime: new Date('2999-01-01') });
    await one.workflow.signal(resolveDepositSignal, CREDIT);
    await startWorker();
    const said = await untilSaid(one.workflow, 'and changed nothing: the deposit has changed since');
    assert.match(said, /in a block after the deposit expired/);
    const { version } = await one.state();
    await one.workflow.signal(resolveDepositSignal, {
      ...CREDIT,
      reason: 'of what was there before',
      version: version - 1,
    });
    await one.workflow.signal(resolveDepositSignal, { ...CREDIT, reason: 'x'.repeat(501) });
    await untilSaid(one.workflow, 'its reason must be');
    assert.deepEqual((await one.state()).payments, ['in_review', 'in_review']);
    assert.deepEqual(await audited(one), []);
    await one.workflow.signal(resolveDepositSignal, RETURNED);
    await one.workflow.result();
  });

  it('applies a decision once, even if nobody is informed and another payment arrives meanwhile', async () => {
    const one = await inReview();
    loseWordOf = () => one.receive('7');
    await one.workflow.signal(resolveDepositSignal, CREDIT);
    await untilSaid(one.workflow, '7.00 USDT are in review');
    assert.deepEqual(await one.state(), {
      ...{ status: 'needs_review', version: 4, creditedCents: 1_000, payments: ['credited', 'in_review'] },
    });
    assert.equal((await audited(one)).length, 1);
    assert.doesNotMatch(await details(one.workflow), /changed nothing/);
    await one.workflow.signal(resolveDepositSignal, CREDIT);
    await one.workflow.result();
    assert.equal((await one.state()).creditedCents, 1_700);
  });

  it('starts again when its deposit changes after it was terminated or cancelled', async () => {
    const { id, workflow, receive, state } = await watched();
    const { runId } = await workflow.describe();
    await workflow.terminate();
    await receive('3');
    await until('another run', async () => (await workflow.describe()).runId !== runId);
    await untilSaid(workflow, '**Waiting for an operator.**');
    await workflow.cancel();
    const operate = operateIn(environmentOf(stack.config));
    assert.equal((await operate('deposit', 'resolve', id, '--credit', '--reason', 'r')).code, 0);
    await until('it has ended', async () => (await workflow.describe()).status.name !== 'RUNNING');
    assert.equal((await state()).status, 'confirmed');
  });

  it('keeps its history short, however often its deposit changes, and loses no decision', async () => {
    const { id, workflow } = await inReview();
    const { runId } = await workflow.describe();
    await until('its history is almost as long as it may be', async () => {
      const { historyLength } = await workflow.describe();
      if (historyLength > 900) return true;
      await Promise.all(Array.from({ length: 25 }, () => workflow.signal('changed')));
      return false;
    });
    await until('another run', async () => {
      await asOwner(stack, 'UPDATE deposit SET version = version + 1 WHERE id = $1', [id]);
      await notifyDeposits(stack.orm);
      return (await workflow.describe()).runId !== runId;
    });
    await untilSaid(workflow, '**Waiting for an operator.**');
    const { historyLength } = await workflow.describe();
    assert.ok(historyLength < 1_000, String(historyLength));
    assert.equal(await attribute(workflow, 'DepositId'), id);
    assert.equal(await attribute(workflow, 'PartnerId'), partner.id);
    assert.equal(await attribute(workflow, 'NeedsAttention'), true);
    await until('a decision is carried out, once the last change is shown', async () => {
      if ((await workflow.describe()).status.name !== 'RUNNING') return true;
      await workflow.signal(resolveDepositSignal, CREDIT).catch(() => {});
      return false;
    });
    await workflow.result();
    assert.equal(await attribute(workflow, 'NeedsAttention'), false);
  });
});

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { issueCardWorkflowId } from '../../workflows/messages.ts';
import { expectError } from '../support/api/answers.ts';
import { createCard, readCardRow } from '../support/cards.ts';
import { assertBalance, assertLedgerClean, fundedPartner, priceOf } from '../support/money.ts';
import { startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';
import { untilStarted } from '../support/workflows.ts';

const AMOUNT_CENTS = 10_000;
const PRICE_CENTS = priceOf(AMOUNT_CENTS);

/** The partner's only operation, once it has begun. */
const begun = (partner: TestPartner) =>
  until('the operation has begun', async () => {
    const { json } = await partner.call('GET', '/operations', { mode: 'live' });
    return json.data[0];
  });

async function workflowOf({ client }: TestStack, partner: TestPartner): Promise<WorkflowHandle> {
  const { resource } = await begun(partner);
  const workflow = client.workflow.getHandle(issueCardWorkflowId(resource.id));
  await untilStarted(workflow);
  return workflow;
}

describe('POST /cards while no worker runs', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await startTestStack({ cardCreationWaitMs: 500 }, { worker: false });
  });
  beforeEach(async () => {
    partner = await fundedPartner(stack);
  });
  afterEach(async () => {
    await stack.stopWorker();
    await assertLedgerClean(stack);
  });
  after(() => stack.stop());

  it('keeps the money held and the card pending if the workflow is terminated', async () => {
    const key = randomUUID();
    const body = { amount: AMOUNT_CENTS, external_ref: randomUUID() };
    const accepted = await createCard(partner, body, { mode: 'live', idempotencyKey: key });
    await (await workflowOf(stack, partner)).terminate('by an operator, in a test');

    await stack.startWorker();
    const again = await createCard(partner, body, { mode: 'live', idempotencyKey: key });
    assert.deepEqual([again.status, again.text], [202, accepted.text]);
    const pending = await partner.call('GET', '/cards?status=funding_pending', { mode: 'live' });
    assert.deepEqual(
      pending.json.data.map(({ id }: { id: string }) => id),
      [accepted.json.id],
    );
    await assertBalance(stack, partner, 'live', { spentCents: 0, heldCents: PRICE_CENTS });
  });
});

describe('POST /cards whose workflow is cancelled before its first answer', () => {
  let stack: TestStack;
  before(async () => {
    stack = await startTestStack({ cardCreationWaitMs: 60_000 }, { worker: false });
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stack.stop();
  });

  for (const [digits, answered, status] of [
    [0, 201, 'active'],
    [47, 202, 'funding_pending'],
  ] as const) {
    it(`answers ${answered} and releases no money, for an amount ending in ${digits}`, async () => {
      const partner = await fundedPartner(stack);
      const body = { amount: AMOUNT_CENTS + digits, external_ref: randomUUID() };
      const options = { mode: 'live', idempotencyKey: randomUUID() } as const;
      const answer = createCard(partner, body, options);
      const operation = await begun(partner);
      assert.deepEqual(
        [operation.status, operation.response_status, operation.waits_for],
        ['in_progress', null, 'network'],
      );
      const early = await createCard(partner, body, options);
      expectError(early, 'idempotency_in_flight');
      assert.equal(early.headers.get('operation-id'), operation.id);
      await (await workflowOf(stack, partner)).cancel();
      await stack.startWorker();

      const { status: code, text, json, headers } = await answer;
      await stack.stopWorker();
      assert.equal(code, answered, text);
      assert.equal(headers.get('operation-id'), operation.id);
      assert.equal((await readCardRow(stack, json.id))?.status, status);
      const price = priceOf(body.amount);
      const isActive = status === 'active';
      await assertBalance(stack, partner, 'live', {
        spentCents: isActive ? price : 0,
        heldCents: isActive ? 0 : price,
      });
    });
  }
});

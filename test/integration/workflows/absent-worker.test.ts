import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { CardNetworkUnavailable } from '../../../domain/card-network.ts';
import { issueCardWorkflowId } from '../../../workflows/messages.ts';
import { createCard, eventTypes, readCardRow } from '../../support/cards.ts';
import { assertBalance, assertLedgerClean, fundedPartner, priceOf } from '../../support/money.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';
import { startedWorkflow } from '../../support/workflows.ts';

const AMOUNT_CENTS = 10_000;
const PRICE_CENTS = priceOf(AMOUNT_CENTS);

describe('POST /cards while no worker runs', () => {
  let stack: TestStack;
  let partner: TestPartner;
  beforeEach(async () => {
    stack = await startTestStack({ cardCreationWaitMs: 500 }, { worker: false });
    partner = await fundedPartner(stack);
  });
  afterEach(() => stack.stop());

  const workflowOf = (cardId: string) => stack.client.workflow.getHandle(issueCardWorkflowId(cardId));

  it('answers 202 in live mode with the money held, and a worker that starts completes it', async () => {
    const key = randomUUID();
    const externalRef = randomUUID();
    const accepted = await createCard(
      partner,
      { amount: AMOUNT_CENTS, external_ref: externalRef },
      { mode: 'live', idempotencyKey: key },
    );
    assert.equal(accepted.status, 202, accepted.text);
    assert.equal(accepted.json.status, 'funding_pending');
    await assertBalance(stack, partner, 'live', { spentCents: 0, heldCents: PRICE_CENTS });

    await stack.startWorker();
    await workflowOf(accepted.json.id).result();
    const card = await partner.call('GET', `/cards/${accepted.json.id}`, { mode: 'live' });
    assert.equal(card.json.status, 'active');
    assert.deepEqual(await eventTypes(stack, accepted.json.id), ['card.issued']);
    await assertBalance(stack, partner, 'live', { spentCents: PRICE_CENTS, heldCents: 0 });
    const again = await createCard(
      partner,
      { amount: AMOUNT_CENTS, external_ref: externalRef },
      { mode: 'live', idempotencyKey: key },
    );
    assert.deepEqual([again.status, again.text], [202, accepted.text]);
    await assertLedgerClean(stack);
  });

  it('answers 402 in either mode if the money is missing, and leaves no card', async () => {
    const poor = await stack.createPartner();
    for (const mode of ['test', 'live'] as const) {
      const refused = await createCard(poor, { amount: AMOUNT_CENTS }, { mode });
      assert.equal(refused.status, 402, refused.text);
      assert.deepEqual((await poor.call('GET', '/cards', { mode })).json.data, []);
    }
  });

  it('keeps the money held and the card pending if the workflow is terminated', async () => {
    const key = randomUUID();
    const externalRef = randomUUID();
    const accepted = await createCard(
      partner,
      { amount: AMOUNT_CENTS, external_ref: externalRef },
      { mode: 'live', idempotencyKey: key },
    );
    await workflowOf(accepted.json.id).terminate('by an operator, in a test');

    await stack.startWorker();
    const again = await createCard(
      partner,
      { amount: AMOUNT_CENTS, external_ref: externalRef },
      { mode: 'live', idempotencyKey: key },
    );
    assert.deepEqual([again.status, again.text], [202, accepted.text]);
    const pending = await partner.call('GET', '/cards?status=funding_pending', { mode: 'live' });
    assert.deepEqual(
      pending.json.data.map(({ id }: { id: string }) => id),
      [accepted.json.id],
    );
    await assertBalance(stack, partner, 'live', { spentCents: 0, heldCents: PRICE_CENTS });
    await assertLedgerClean(stack);
  });
});

describe('POST /cards whose workflow is asked to stop before its first answer', () => {
  let stack: TestStack;
  /** @param cardCreationWaitMs what is terminated gets its answer when that is over */
  const startStack = async (cardCreationWaitMs: number) => {
    stack = await startTestStack({ cardCreationWaitMs }, { worker: false });
  };
  afterEach(() => stack.stop());

  for (const [how, digits, status] of [
    ['cancelled', 0, 201],
    ['cancelled', 47, 202],
    ['terminated', 0, 202],
  ] as const) {
    it(`answers ${status} and releases no money if it is ${how}, for an amount ending in ${digits}`, async () => {
      await startStack(how === 'cancelled' ? 30_000 : 3_000);
      const partner = await fundedPartner(stack);
      const amountCents = 10_000 + digits;
      const answer = createCard(partner, { amount: amountCents }, { mode: 'live' });
      const workflow = await startedWorkflow(stack);
      if (how === 'cancelled') await workflow.cancel();
      else await workflow.terminate('by an operator, in a test');
      await stack.startWorker();

      const { status: answered, text, json } = await answer;
      assert.equal(answered, status, text);
      const isActive = status === 201;
      assert.equal((await readCardRow(stack, json.id))?.status, isActive ? 'active' : 'funding_pending');
      const price = priceOf(amountCents);
      await assertBalance(stack, partner, 'live', {
        spentCents: isActive ? price : 0,
        heldCents: isActive ? 0 : price,
      });
      await assertLedgerClean(stack);
    });
  }

  it('answers 202 if the network does not answer and the workflow is terminated meanwhile', async () => {
    await startStack(5_000);
    const silence = () => Promise.reject(new CardNetworkUnavailable('no answer, in a test'));
    await stack.startWorker({
      around: {
        activities: (same) => same,
        network: (same) => ({ ...same, issueCard: silence, lookUpIssuance: silence }),
      },
    });
    const partner = await fundedPartner(stack);
    const answer = createCard(partner, { amount: AMOUNT_CENTS }, { mode: 'live' });
    const workflow = await startedWorkflow(stack);
    await until('the network is asked', async () =>
      stack.logLines.some((line) => line.includes('no answer, in a test')),
    );
    await workflow.terminate('by an operator, in a test');

    const { status, text } = await answer;
    assert.equal(status, 202, text);
    await assertBalance(stack, partner, 'live', { spentCents: 0, heldCents: PRICE_CENTS });
  });
});

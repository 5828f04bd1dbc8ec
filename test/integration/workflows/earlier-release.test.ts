import assert from 'node:assert/strict';
import { claimIdempotencyKey, newResourceId } from '../../../commands/idempotency/claim.ts';
import { sealRequest } from '../../../commands/idempotency/response.ts';
import { cardsTaskQueue } from '../../../config/task-queues.ts';
import { newId } from '../../../crypto/new-id.ts';
import { query } from '../../../db/sql.ts';
import type { WorkflowOperation } from '../../../domain/claim-operation.ts';
import { type ClaimedWorkflow, claimedWorkflowId, startClaimed } from '../../../temporal/claimed-workflow.ts';
import { cardIn } from '../../support/card-status.ts';
import { eventTypes, readCardRow } from '../../support/cards.ts';
import { assertBalance, assertLedgerClean, fundedPartner, priceOf } from '../../support/money.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';

const BODIES: Record<string, object> = {
  create_card: { amount: 1_000, external_ref: 'r' },
  top_up_card: { amount: 1_000 },
};

describe('a test-mode workflow that the previous release started', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let cardId: string;
  before(async () => {
    stack = await startTestStack();
    partner = await fundedPartner(stack);
    cardId = await cardIn(stack, partner, 'test', 'active');
  });
  after(() => stack.stop());

  /** As that release's API did, but for the id of a claim that the upgrade has removed. */
  async function start(operation: WorkflowOperation, claimIsLeft: boolean): Promise<ClaimedWorkflow> {
    const { orm, operator } = stack;
    const [claimId, resourceId] = [newId('claim'), newResourceId(operation)];
    const about = operation === 'create_card' ? null : cardId;
    if (claimIsLeft) {
      await claimIdempotencyKey(
        { orm, ring: operator.ring },
        {
          ...{
            claimId,
            partnerId: partner.id,
            mode: 'test',
            key: claimId,
            operation,
            resourceId,
            cardId: about,
          },
          ...{
            fingerprint: Buffer.from(operation),
            requestId: newId('req'),
            apiKeyId: null,
            clientAddress: null,
            leaseMs: 60_000,
          },
          sealedRequest: sealRequest(operator.ring, claimId, BODIES[operation] ?? {}),
        },
      );
    }
    const workflow: ClaimedWorkflow = {
      ...{ claimId, partnerId: partner.id, mode: 'test', operation, deadlineMs: 60_000 },
      cardId: about ?? resourceId ?? '',
      ...(operation === 'top_up_card' && { topUpId: newId('topup') }),
      taskQueue: cardsTaskQueue(stack.config.taskQueuePrefix),
    };
    await startClaimed(stack.client, workflow);
    return workflow;
  }

  for (const claimIsLeft of [true, false]) {
    it(`ends and does nothing if its claim ${claimIsLeft ? 'still exists' : 'is gone'}`, async () => {
      for (const operation of ['create_card', 'top_up_card', 'freeze_card', 'block_card'] as const) {
        const workflow = await start(operation, claimIsLeft);
        await stack.client.workflow.getHandle(claimedWorkflowId(workflow)).result();
      }
      const cards = await query(stack.orm.em.fork(), 'SELECT FROM card');
      const topUps = await query(stack.orm.em.fork(), 'SELECT FROM topup');
      assert.deepEqual([cards.length, topUps.length], [1, 0]);
      assert.equal((await readCardRow(stack, cardId))?.status, 'active');
      assert.deepEqual(await eventTypes(stack, cardId), ['card.issued']);
      await assertBalance(stack, partner, 'test', { spentCents: priceOf(10_000), heldCents: 0 });
      await assertLedgerClean(stack);
    });
  }
});

import { randomUUID } from 'node:crypto';
import { issueCardWorkflowId, resolveOperationSignal } from '../../workflows/messages.ts';
import { readCardRow } from '../support/cards.ts';
import { fundedPartner } from '../support/money.ts';
import { until } from '../support/until.ts';
import { CARDHOLDER, madeBy, type Recording } from './recording.ts';

const issuance =
  ({ cents = 10_000, isFunded = true }): Recording =>
  async (stack) => {
    const partner = isFunded ? await fundedPartner(stack) : await stack.createPartner();
    const body = { amount: cents, external_ref: randomUUID(), ...CARDHOLDER };
    await partner.call('POST', '/cards', { mode: 'live', body, idempotencyKey: randomUUID() });
    const cardId = await madeBy(stack, partner, 'create_card');
    const workflow = stack.client.workflow.getHandle(issueCardWorkflowId(cardId));
    // The network accepts it and never completes it: an operator decides.
    if (cents % 100 === 47) {
      await until('the card is overdue', async () => (await readCardRow(stack, cardId))?.overdue_since);
      await workflow.signal(resolveOperationSignal, { outcome: 'failed' });
    }
    return workflow;
  };

export const ISSUE_CARD: Record<string, Recording> = {
  refused: issuance({ isFunded: false }),
  active: issuance({}),
  'resolved-failed': issuance({ cents: 10_047 }),
};

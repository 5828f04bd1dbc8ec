import { randomUUID } from 'node:crypto';
import { resolveOperationSignal, transferWorkflowId } from '../../workflows/messages.ts';
import { fundedPartner } from '../support/money.ts';
import { readTransferRow } from '../support/transfers.ts';
import { until } from '../support/until.ts';
import { CARDHOLDER, madeBy, type Recording } from './recording.ts';

interface Withdrawal {
  amountCents?: number;
  afterwards?: 'succeeded' | 'failed';
  /** Whether somebody decides before the deadline, which has no effect. */
  early?: true;
}

const withdrawal =
  ({ amountCents = 5_000, afterwards, early }: Withdrawal): Recording =>
  async (stack) => {
    const partner = await fundedPartner(stack);
    const post = (path: string, body: object) =>
      partner.call('POST', path, { mode: 'live', body, idempotencyKey: randomUUID() });
    const card = await post('/cards', { amount: 10_000, external_ref: randomUUID(), ...CARDHOLDER });
    await post(`/cards/${card.json.id}/withdrawals`, { amount: amountCents });
    const withdrawalId = await madeBy(stack, partner, 'withdraw_from_card');
    const workflow = stack.client.workflow.getHandle(transferWorkflowId('withdrawal', withdrawalId));
    if (early) await workflow.signal(resolveOperationSignal, { outcome: 'succeeded' });
    if (afterwards !== undefined) {
      await until('it is overdue', async () => (await readTransferRow(stack, withdrawalId))?.overdue_since);
      await workflow.signal(resolveOperationSignal, { outcome: afterwards });
    }
    return workflow;
  };

/** Every outcome of withdrawFromCard. */
export const WITHDRAW_FROM_CARD: Record<string, Recording> = {
  refused: withdrawal({ amountCents: 999_999 }),
  succeeded: withdrawal({}),
  declined: withdrawal({ amountCents: 5_042 }),
  'later-succeeded': withdrawal({ amountCents: 5_041 }),
  'later-failed': withdrawal({ amountCents: 5_043 }),
  'callback-lost': withdrawal({ amountCents: 5_045 }),
  'resolved-succeeded': withdrawal({ amountCents: 5_047, afterwards: 'succeeded' }),
  'resolved-failed': withdrawal({ amountCents: 5_047, afterwards: 'failed' }),
  'decided-early': withdrawal({ amountCents: 5_047, early: true, afterwards: 'failed' }),
};

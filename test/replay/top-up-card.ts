import { randomUUID } from 'node:crypto';
import type { Mode } from '../../domain/mode.ts';
import { resolveOperationSignal, transferWorkflowId } from '../../workflows/messages.ts';
import { fundedPartner } from '../support/money.ts';
import { readTransferRow } from '../support/transfers.ts';
import { until } from '../support/until.ts';
import { CARDHOLDER, madeBy, type Recording } from './recording.ts';

interface TopUp {
  mode?: Mode;
  amountCents?: number;
  afterwards?: 'succeeded' | 'failed' | 'blocked';
  /** Whether somebody decides before the deadline, which has no effect. */
  early?: true;
}

const topUp =
  ({ mode = 'live', amountCents = 5_000, afterwards, early }: TopUp): Recording =>
  async (stack) => {
    const partner = await fundedPartner(stack);
    const post = (path: string, body: object) =>
      partner.call('POST', path, { mode, body, idempotencyKey: randomUUID() });
    const card = await post('/cards', { amount: 10_000, external_ref: randomUUID(), ...CARDHOLDER });
    await post(`/cards/${card.json.id}/topups`, { amount: amountCents });
    const topUpId = await madeBy(stack, partner, 'top_up_card');
    const workflow = stack.client.workflow.getHandle(transferWorkflowId('topup', topUpId));
    if (early) await workflow.signal(resolveOperationSignal, { outcome: 'succeeded' });
    if (afterwards === 'blocked') {
      await post(`/cards/${card.json.id}/block`, {});
    } else if (afterwards !== undefined) {
      await until('it is overdue', async () => (await readTransferRow(stack, topUpId))?.overdue_since);
      await workflow.signal(resolveOperationSignal, { outcome: afterwards });
    }
    return workflow;
  };

/** Every outcome of topUpCard. */
export const TOP_UP_CARD: Record<string, Recording> = {
  refused: topUp({ amountCents: 999_999 }),
  succeeded: topUp({}),
  declined: topUp({ amountCents: 5_042 }),
  'later-succeeded': topUp({ amountCents: 5_041 }),
  'later-failed': topUp({ amountCents: 5_043 }),
  'callback-lost': topUp({ amountCents: 5_045 }),
  'resolved-succeeded': topUp({ amountCents: 5_047, afterwards: 'succeeded' }),
  'resolved-failed': topUp({ amountCents: 5_047, afterwards: 'failed' }),
  'decided-early': topUp({ amountCents: 5_047, early: true, afterwards: 'failed' }),
  blocked: topUp({ amountCents: 5_047, afterwards: 'blocked' }),
};

import { randomUUID } from 'node:crypto';
import { TRANSFERS, type TransferDirection } from '../../domain/transfer.ts';
import { transferWorkflowId } from '../../workflows/messages.ts';
import { fundedPartner } from '../support/money.ts';
import { CARDHOLDER, madeBy, type Recording } from './recording.ts';

const transfer =
  (direction: TransferDirection, amountCents: number): Recording =>
  async (stack) => {
    const partner = await fundedPartner(stack);
    const post = (path: string, body: object) =>
      partner.call('POST', path, { mode: 'live', body, idempotencyKey: randomUUID() });
    const card = await post('/cards', { amount: 10_000, external_ref: randomUUID(), ...CARDHOLDER });
    await post(`/cards/${card.json.id}/${direction}s`, { amount: amountCents });
    const transferId = await madeBy(stack, partner, TRANSFERS[direction].operation);
    return stack.client.workflow.getHandle(transferWorkflowId(direction, transferId));
  };

const outcomes = (direction: TransferDirection): Record<string, Recording> => ({
  refused: transfer(direction, 999_999),
  succeeded: transfer(direction, 5_000),
  declined: transfer(direction, 5_042),
});

export const TOP_UP_CARD = outcomes('topup');
export const WITHDRAW_FROM_CARD = outcomes('withdrawal');

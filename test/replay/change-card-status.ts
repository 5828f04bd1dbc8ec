import { randomUUID } from 'node:crypto';
import { cardsTaskQueue } from '../../platform/config/task-queues.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import {
  CHANGE_CARD_STATUS as CHANGE_CARD_STATUS_TYPE,
  type ChangeCardStatusInput,
  changeCardStatusWorkflowId,
} from '../../workflows/messages.ts';
import { statusClaims, type Verb } from '../support/card-status.ts';
import { fundedPartner } from '../support/money.ts';
import { asOwner } from '../support/postgres.ts';
import { CARDHOLDER, type Recording } from './recording.ts';

/**
 * Records a change.
 * @param before SQL that the owner runs before it. $1: the card's id.
 */
const statusChange =
  (verb: Verb, before?: string): Recording =>
  async (stack) => {
    const partner = await fundedPartner(stack);
    const post = (path: string, body: object = {}) =>
      partner.call('POST', path, { mode: 'live', body, idempotencyKey: randomUUID() });
    const { json: card } = await post('/cards', {
      amount: 10_000,
      external_ref: randomUUID(),
      ...CARDHOLDER,
    });
    if (before !== undefined) await asOwner(stack, before, [card.id]);
    await post(`/cards/${card.id}/${verb}`);
    const claimId = (await statusClaims(stack, card.id)).at(-1)?.id ?? '';
    return stack.client.workflow.getHandle(changeCardStatusWorkflowId(card.id, claimId));
  };

/** As if the claim had been pruned before the workflow began. */
const forgotten: Recording = ({ client, config }) =>
  client.workflow.start(CHANGE_CARD_STATUS_TYPE, {
    workflowId: changeCardStatusWorkflowId(newId('card'), randomUUID()),
    taskQueue: cardsTaskQueue(config.taskQueuePrefix),
    args: [{ claimId: randomUUID() }] satisfies [ChangeCardStatusInput],
    staticSummary: 'a change that is forgotten',
  });

export const CHANGE_CARD_STATUS: Record<string, Recording> = {
  frozen: statusChange('freeze'),
  refused: statusChange('unfreeze'),
  'refused-by-network': statusChange(
    'freeze',
    `UPDATE simulated_network.card SET status = 'blocked' WHERE token = $1`,
  ),
  forgotten,
};

import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import pg from 'pg';
import type { Mode } from '../../domain/mode.ts';
import { cardsTaskQueue } from '../../platform/config/task-queues.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import {
  CHANGE_CARD_STATUS as CHANGE_CARD_STATUS_TYPE,
  type ChangeCardStatusInput,
  changeCardStatusWorkflowId,
} from '../../workflows/messages.ts';
import { claimUnderWay, statusClaims, type Verb } from '../support/card-status.ts';
import { readCardRow } from '../support/cards.ts';
import { fundedPartner } from '../support/money.ts';
import { asOwner } from '../support/postgres.ts';
import type { TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';
import { skipTime, untilBeyondLocal, untilStarted } from '../support/workflows.ts';
import { CARDHOLDER, type Recording } from './recording.ts';

interface StatusChange {
  mode?: Mode;
  /** The changes to make. The last one is recorded. */
  verbs: readonly Verb[];
  /** SQL that the owner runs before the last change. $1: the card's id. */
  before?: string;
  /** A change that is sent first, so that the last one waits for it. */
  ahead?: Verb;
  /** Runs while the network gives no answer. @param goingOn takes work that lasts until the end */
  meanwhile?(workflow: WorkflowHandle, goingOn: Promise<unknown>[]): Promise<unknown>;
}

const statusChange =
  ({ mode = 'live', verbs, before, ahead, meanwhile }: StatusChange): Recording =>
  async (stack) => {
    const partner = await fundedPartner(stack);
    const post = (path: string, body: object = {}) =>
      partner.call('POST', path, { mode, body, idempotencyKey: randomUUID() });
    const { json: card } = await post('/cards', {
      amount: 10_000,
      external_ref: randomUUID(),
      ...CARDHOLDER,
    });
    for (const verb of verbs.slice(0, -1)) await post(`/cards/${card.id}/${verb}`);
    if (before !== undefined) await asOwner(stack, before, [card.id]);

    const goingOn: Promise<unknown>[] = [];
    const send = async (verb: Verb | undefined) => {
      const { length } = await statusClaims(stack, card.id);
      goingOn.push(post(`/cards/${card.id}/${verb}`));
      const claimId = await until('its claim', async () => (await statusClaims(stack, card.id))[length]?.id);
      const workflow = stack.client.workflow.getHandle(changeCardStatusWorkflowId(card.id, claimId));
      await untilStarted(workflow);
      return workflow;
    };
    const endSilence = meanwhile && (await silenceNetwork(stack, card.id));
    if (ahead !== undefined) {
      await send(ahead);
      await until('it is asked for', () => claimUnderWay(stack, card.id));
    }
    const workflow = await send(verbs.at(-1));
    await meanwhile?.(workflow, goingOn);
    await endSilence?.();
    await Promise.all(goingOn);
    return workflow;
  };

/** Makes the simulated network answer every request about a card with 500, until the returned function is called. */
async function silenceNetwork(stack: TestStack, cardId: string): Promise<() => Promise<unknown>> {
  const table = 'ALTER TABLE simulated_network.operation';
  const networkCardId = pg.escapeLiteral((await readCardRow(stack, cardId))?.network_card_id ?? '');
  await asOwner(
    stack,
    `${table} ADD CONSTRAINT silent_${cardId} CHECK (request ->> 'networkCardId' <> ${networkCardId}) NOT VALID`,
  );
  return () => asOwner(stack, `${table} DROP CONSTRAINT silent_${cardId}`);
}

const untilBegun = (workflow: WorkflowHandle) =>
  until('its first task has begun', async () => (await workflow.describe()).historyLength > 2);

async function untilAttention(workflow: WorkflowHandle, goingOn: Promise<unknown>[]): Promise<void> {
  // After ten minutes there is no timer left to skip.
  goingOn.push(skipTime(workflow, 900_000));
  await until('it needs attention', async () => {
    const { typedSearchAttributes } = await workflow.describe();
    return typedSearchAttributes.getAll().some(({ key, value }) => key.name === 'NeedsAttention' && value);
  });
}

/** As if the claim had been pruned before the workflow began. */
const forgotten: Recording = ({ client, config }) =>
  client.workflow.start(CHANGE_CARD_STATUS_TYPE, {
    workflowId: changeCardStatusWorkflowId(newId('card'), randomUUID()),
    taskQueue: cardsTaskQueue(config.taskQueuePrefix),
    args: [{ claimId: randomUUID() }] satisfies [ChangeCardStatusInput],
    staticSummary: 'a change that is forgotten',
  });

/** Every outcome of changeCardStatus. */
export const CHANGE_CARD_STATUS: Record<string, Recording> = {
  frozen: statusChange({ verbs: ['freeze'] }),
  refused: statusChange({ verbs: ['unfreeze'] }),
  'refused-by-network': statusChange({
    verbs: ['freeze'],
    before: `UPDATE simulated_network.card SET status = 'blocked' WHERE token = $1`,
  }),
  'turn-later': statusChange({ verbs: ['block'], ahead: 'freeze', meanwhile: untilBeyondLocal }),
  'turn-later-refused': statusChange({ verbs: ['freeze'], ahead: 'block', meanwhile: untilBeyondLocal }),
  forgotten,
  'network-later': statusChange({ verbs: ['freeze'], meanwhile: untilBeyondLocal }),
  cancelled: statusChange({
    verbs: ['freeze'],
    meanwhile: async (workflow) => {
      await untilBegun(workflow);
      await workflow.cancel();
      await untilBeyondLocal(workflow);
    },
  }),
  attention: statusChange({ verbs: ['freeze'], meanwhile: untilAttention }),
};

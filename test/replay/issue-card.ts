import { randomUUID } from 'node:crypto';
import type { Mode } from '../../domain/mode.ts';
import { issueCardWorkflowId, resolveOperationSignal } from '../../workflows/messages.ts';
import { readCardRow } from '../support/cards.ts';
import { fundedPartner } from '../support/money.ts';
import { asOwner } from '../support/postgres.ts';
import type { TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';
import { skipTime, untilBeyondLocal } from '../support/workflows.ts';
import { CARDHOLDER, madeBy, type Recording } from './recording.ts';

interface Issuance {
  mode?: Mode;
  digits?: number;
  /** False: the account has no funds. */
  funded?: false;
  resolve?: 'issued' | 'failed';
  /** Whether somebody decides before the deadline, which has no effect. */
  early?: true;
  /** Whether the network is silent until the workflow gives up its first attempts, or until the card is overdue. */
  silence?: 'first' | 'overdue';
  /** Whether the workflow's clock passes the deadline before the database's does. */
  ahead?: true;
}

const issuance =
  ({ mode = 'live', digits = 0, funded, resolve, early, silence, ahead }: Issuance): Recording =>
  async (stack) => {
    const partner = funded === false ? await stack.createPartner() : await fundedPartner(stack);
    const body = { amount: 10_000 + digits, external_ref: randomUUID(), ...CARDHOLDER };
    const endSilence = silence && (await silenceNetwork(stack, body.amount));
    const answered = partner.call('POST', '/cards', { mode, body, idempotencyKey: randomUUID() });
    const cardId = await until('it is claimed', () =>
      madeBy(stack, partner, 'create_card').catch(() => null),
    );
    const workflow = stack.client.workflow.getHandle(issueCardWorkflowId(cardId));
    if (silence === 'first') await untilBeyondLocal(workflow);
    if (silence !== 'overdue') {
      await endSilence?.();
      await answered;
    }
    const isOverdue = () =>
      until('the card is overdue', async () => (await readCardRow(stack, cardId))?.overdue_since);
    if (silence === 'overdue') {
      await isOverdue();
      await endSilence?.();
      await answered;
    }
    if (early) {
      await workflow.signal('resolve', { outcome: 'issued', networkCardId: 'not an id' });
      await workflow.signal(resolveOperationSignal, { outcome: 'issued' });
    }
    if (ahead) await skipTime(workflow, stack.config.issuanceDeadlineMs);
    if (resolve !== undefined) {
      await isOverdue();
      await workflow.signal(resolveOperationSignal, { outcome: resolve });
    }
    return workflow;
  };

/** Makes the simulated network answer every request for this amount with 500, until the returned function is called. */
async function silenceNetwork(stack: TestStack, amountCents: number): Promise<() => Promise<unknown>> {
  const table = 'ALTER TABLE simulated_network.operation';
  await asOwner(
    stack,
    `${table} ADD CONSTRAINT silent_${amountCents} CHECK (request ->> 'amountCents' <> '${amountCents}') NOT VALID`,
  );
  return () => asOwner(stack, `${table} DROP CONSTRAINT silent_${amountCents}`);
}

/** Every outcome of issueCard. */
export const ISSUE_CARD: Record<string, Recording> = {
  refused: issuance({ funded: false }),
  active: issuance({}),
  declined: issuance({ digits: 42 }),
  'later-active': issuance({ digits: 41 }),
  'later-failed': issuance({ digits: 43 }),
  'callback-lost': issuance({ digits: 45 }),
  'callback-twice': issuance({ digits: 46 }),
  'resolved-issued': issuance({ digits: 47, resolve: 'issued' }),
  'decided-early': issuance({ digits: 47, early: true, resolve: 'failed' }),
  'resolved-failed': issuance({ digits: 47, resolve: 'failed' }),
  'network-silent-first': issuance({ digits: 7, silence: 'first' }),
  // The first request takes several workflow tasks. A worker that goes on after a kill replays them as one.
  'overdue-after-silence': issuance({ digits: 9, silence: 'overdue' }),
  'deadline-early': issuance({ digits: 47, ahead: true, resolve: 'failed' }),
};

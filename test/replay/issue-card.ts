import { randomUUID } from 'node:crypto';
import type { Mode } from '../../domain/mode.ts';
import { issueCardWorkflowId, resolveIssuance } from '../../workflows/messages.ts';
import { readCardRow } from '../support/cards.ts';
import { fundedPartner } from '../support/money.ts';
import { until } from '../support/until.ts';
import { CARDHOLDER, madeBy, type Recording } from './recording.ts';

interface Issuance {
  mode?: Mode;
  digits?: number;
  /** Without funds where false. */
  funded?: false;
  resolve?: 'issued' | 'failed';
  /** Whether somebody has decided before the deadline already, without effect. */
  early?: true;
}

const issuance =
  ({ mode = 'live', digits = 0, funded, resolve, early }: Issuance): Recording =>
  async (stack) => {
    const partner = funded === false ? await stack.createPartner() : await fundedPartner(stack);
    const body = { amount: 10_000 + digits, external_ref: randomUUID(), ...CARDHOLDER };
    await partner.call('POST', '/cards', { mode, body, idempotencyKey: randomUUID() });
    const cardId = await madeBy(stack, partner, 'create_card');
    const workflow = stack.client.workflow.getHandle(issueCardWorkflowId(cardId));
    if (early) await workflow.signal(resolveIssuance, { outcome: 'issued' });
    if (resolve !== undefined) {
      await until('the card is overdue', async () => (await readCardRow(stack, cardId))?.overdue_since);
      await workflow.signal(resolveIssuance, { outcome: resolve });
    }
    return workflow;
  };

/** Every outcome of issueCard. */
export const ISSUE_CARD: Record<string, Recording> = {
  refused: issuance({ funded: false }),
  active: issuance({}),
  declined: issuance({ digits: 42 }),
  'later-active': issuance({ digits: 41 }),
  'later-failed': issuance({ digits: 43 }),
  'answer-lost': issuance({ digits: 44 }),
  'callback-lost': issuance({ digits: 45 }),
  'callback-twice': issuance({ digits: 46 }),
  'network-unavailable-first': issuance({ digits: 48 }),
  'resolved-issued': issuance({ digits: 47, resolve: 'issued' }),
  'decided-early': issuance({ digits: 47, early: true, resolve: 'failed' }),
  'resolved-failed': issuance({ digits: 47, resolve: 'failed' }),
};

import assert from 'node:assert/strict';
import type { WorkflowHandle } from '@temporalio/client';
import type { CardRow } from '../../cards/resource.ts';
import type { TransferRow } from '../../cards/transfers/resource.ts';
import { TRANSFER_DIRECTIONS, TRANSFERS, type TransferDirection } from '../../domain/transfer.ts';
import {
  ISSUE_CARD,
  issueCardWorkflowId,
  TOP_UP_CARD,
  transferWorkflowId,
  WITHDRAW_FROM_CARD,
} from '../../workflows/messages.ts';
import { createCard, eventTypes, readCardRow } from './cards.ts';
import { fundedPartner, priceOf } from './money.ts';
import { asOwner } from './postgres.ts';
import type { TestPartner, TestStack } from './stack.ts';
import { readTransferRow, transfer } from './transfers.ts';

/** The network accepts it and then stays silent. */
const SILENT_CENTS = 10_047;
const CARD_CENTS = 10_000;

/** An operation that the network accepted and never completes. */
export interface Silent {
  partner: TestPartner;
  /** Of the card, top-up or withdrawal: the network's token. */
  id: string;
  workflow: WorkflowHandle;
  /** What the account spent before it, what is held of its balance, and what a yes costs, in cents. */
  spentBeforeCents: number;
  heldCents: number;
  costCents: number;
  /** As if it had begun 25 hours ago. */
  age(): Promise<unknown>;
  row(): Promise<CardRow | TransferRow | undefined>;
  /** Types of the events about it. */
  events(): Promise<string[]>;
}

export interface SilentKind {
  name: string;
  /** The type of its workflow. */
  type: string;
  /** The outcome of an operator's yes. */
  yes: string;
  pending: string;
  /** Its status after a yes, and the events of yes and no. */
  succeeded: string;
  told: { yes: string; no: string };
  begin(stack: TestStack): Promise<Silent>;
}

const ISSUANCE: SilentKind = {
  name: 'an issuance',
  type: ISSUE_CARD,
  yes: 'issued',
  pending: 'funding_pending',
  succeeded: 'active',
  told: { yes: 'card.issued', no: 'card.issue_failed' },
  async begin(stack) {
    const partner = await fundedPartner(stack);
    const { status, json, text } = await createCard(partner, { amount: SILENT_CENTS }, { mode: 'live' });
    assert.equal(status, 202, text);
    return {
      partner,
      id: json.id,
      workflow: stack.client.workflow.getHandle(issueCardWorkflowId(json.id)),
      spentBeforeCents: 0,
      heldCents: priceOf(SILENT_CENTS),
      costCents: priceOf(SILENT_CENTS),
      age: () => age(stack, 'card', json.id),
      row: () => readCardRow(stack, json.id),
      events: () => eventTypes(stack, json.id),
    };
  },
};

const SILENT_TRANSFERS = {
  topup: { type: TOP_UP_CARD, heldCents: priceOf(SILENT_CENTS, 'card_topup') },
  withdrawal: { type: WITHDRAW_FROM_CARD, heldCents: 0 },
} as const;

const silentTransfer = (direction: TransferDirection): SilentKind => ({
  name: `a ${TRANSFERS[direction].noun}`,
  type: SILENT_TRANSFERS[direction].type,
  yes: 'succeeded',
  pending: 'pending',
  succeeded: 'succeeded',
  told: { yes: `${direction}.succeeded`, no: `${direction}.failed` },
  async begin(stack) {
    const { heldCents } = SILENT_TRANSFERS[direction];
    const partner = await fundedPartner(stack);
    const card = await createCard(partner, { amount: 2 * CARD_CENTS }, { mode: 'live' });
    assert.equal(card.status, 201, card.text);
    const holder = { partner, mode: 'live', cardId: card.json.id } as const;
    const { status, json, text } = await transfer(direction, holder, SILENT_CENTS);
    assert.equal(status, 202, text);
    return {
      partner,
      id: json.id,
      workflow: stack.client.workflow.getHandle(transferWorkflowId(direction, json.id)),
      spentBeforeCents: priceOf(2 * CARD_CENTS),
      heldCents,
      costCents: direction === 'topup' ? heldCents : -SILENT_CENTS,
      age: () => age(stack, 'card_transfer', json.id),
      row: () => readTransferRow(stack, json.id),
      events: async () => (await eventTypes(stack, card.json.id)).slice(1),
    };
  },
});

const age = (stack: TestStack, table: 'card' | 'card_transfer', id: string): Promise<unknown> =>
  asOwner(stack, `UPDATE ${table} SET created_at = created_at - interval '25 hours' WHERE id = $1`, [id]);

/** Every kind of operation that waits for the network, and then for an operator. */
export const SILENT_KINDS: readonly SilentKind[] = [ISSUANCE, ...TRANSFER_DIRECTIONS.map(silentTransfer)];

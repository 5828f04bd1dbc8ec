import assert from 'node:assert/strict';
import { issueCardWorkflowId, transferWorkflowId } from '../../../workflows/messages.ts';
import { createCard } from '../cards.ts';
import { fundedPartner } from '../money.ts';
import type { Answer, TestPartner, TestStack } from '../stack.ts';
import { CARD_CENTS, cardholder, transfer } from '../transfers.ts';

/** Accepted by the simulated network, which then never finishes (docs/partners/testing.md). */
export const NEVER_FINISHES = 10_047;

const WITHDRAWAL_CARD_CENTS = CARD_CENTS + 20_000;

/** An operation that the network has accepted and never finishes, in live mode. */
export interface PendingOperation {
  id: string;
  partner: TestPartner;
  cardId: string;
}

/** An operation that an operator can resolve, and its names. */
export interface Resolvable {
  command: 'card' | 'topup' | 'withdrawal';
  success: '--issued' | '--succeeded';
  /** Its status while it is pending, and once it has succeeded. */
  pending: 'funding_pending' | 'pending';
  succeeded: 'active' | 'succeeded';
  /** The variable that holds its deadline. */
  deadline: 'ISSUANCE_DEADLINE' | 'TOPUP_DEADLINE' | 'WITHDRAWAL_DEADLINE';
  /** Its kind in "attention list", and what that says the network has not reported. */
  kind: 'card_issuance' | 'card_topup' | 'card_withdrawal';
  waitsFor: string;
  /** What a refusal says once it is over. */
  isOver: Record<'succeeded' | 'failed', RegExp>;
  /** An unknown id, and what its refusal says. */
  unknownId: string;
  unknown: RegExp;
  events: Record<'succeeded' | 'failed', string>;
  workflowIdOf(id: string): string;
  begin(stack: TestStack): Promise<PendingOperation>;
  /** What the operation holds while it is pending, and what is on the card afterwards, in cents. */
  held: { of: 'account' | 'card'; cents: number };
  cardCents: Record<'succeeded' | 'failed', number>;
}

function accepted({ status, json, text }: Answer): string {
  assert.equal(status, 202, text);
  return json.id;
}

const isOver = { succeeded: /has already succeeded/, failed: /has already failed/ };

export const RESOLVABLE: readonly Resolvable[] = [
  {
    command: 'card',
    success: '--issued',
    pending: 'funding_pending',
    succeeded: 'active',
    deadline: 'ISSUANCE_DEADLINE',
    kind: 'card_issuance',
    waitsFor: 'whether it issued the card',
    isOver: { succeeded: /is over and the card is active/, failed: /is over and the card is failed/ },
    unknownId: 'card_01k0000000000000000000000a',
    unknown: /^There is no card card_01k0000000000000000000000a: .*GET \/v1\/cards/,
    events: { succeeded: 'card.issued', failed: 'card.issue_failed' },
    workflowIdOf: issueCardWorkflowId,
    async begin(stack) {
      const partner = await fundedPartner(stack);
      const id = accepted(await createCard(partner, { amount: NEVER_FINISHES }, { mode: 'live' }));
      return { id, partner, cardId: id };
    },
    // With the fees of a card.
    held: { of: 'account', cents: NEVER_FINISHES + 100 + 201 },
    cardCents: { succeeded: NEVER_FINISHES, failed: 0 },
  },
  {
    command: 'topup',
    success: '--succeeded',
    pending: 'pending',
    succeeded: 'succeeded',
    deadline: 'TOPUP_DEADLINE',
    kind: 'card_topup',
    waitsFor: 'whether it loaded the card',
    isOver,
    unknownId: 'topup_01k0000000000000000000000a',
    unknown: /^There is no top-up topup_01k0000000000000000000000a: .*topups/,
    events: { succeeded: 'topup.succeeded', failed: 'topup.failed' },
    workflowIdOf: (id) => transferWorkflowId('topup', id),
    async begin(stack) {
      const holder = await cardholder(stack, 'live', 1_000_000);
      return { ...holder, id: accepted(await transfer('topup', holder, NEVER_FINISHES)) };
    },
    // With its fee of 2 %.
    held: { of: 'account', cents: NEVER_FINISHES + 201 },
    cardCents: { succeeded: CARD_CENTS + NEVER_FINISHES, failed: CARD_CENTS },
  },
  {
    command: 'withdrawal',
    success: '--succeeded',
    pending: 'pending',
    succeeded: 'succeeded',
    deadline: 'WITHDRAWAL_DEADLINE',
    kind: 'card_withdrawal',
    waitsFor: 'whether it took the money off the card',
    isOver,
    unknownId: 'wdr_01k0000000000000000000000a',
    unknown: /^There is no withdrawal wdr_01k0000000000000000000000a: .*withdrawals/,
    events: { succeeded: 'withdrawal.succeeded', failed: 'withdrawal.failed' },
    workflowIdOf: (id) => transferWorkflowId('withdrawal', id),
    async begin(stack) {
      const holder = await cardholder(stack, 'live', 1_000_000);
      const loaded = await transfer('topup', holder, WITHDRAWAL_CARD_CENTS - CARD_CENTS);
      assert.equal(loaded.status, 201, loaded.text);
      return { ...holder, id: accepted(await transfer('withdrawal', holder, NEVER_FINISHES)) };
    },
    held: { of: 'card', cents: NEVER_FINISHES },
    cardCents: { succeeded: WITHDRAWAL_CARD_CENTS - NEVER_FINISHES, failed: WITHDRAWAL_CARD_CENTS },
  },
];

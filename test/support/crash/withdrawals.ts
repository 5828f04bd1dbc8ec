import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { query } from '../../../platform/db/sql.ts';
import { issueCardWorkflowId, withdrawFromCardWorkflowId } from '../../../workflows/messages.ts';
import { createCard, eventTypes } from '../cards.ts';
import { assertBalance, balanceOfCard, fundedPartner, priceOf } from '../money.ts';
import { readWithdrawalRow } from '../withdrawals.ts';
import type { Prepare } from './operations.ts';

/** The names of withdrawFromCard's steps. */
export const WITHDRAWAL_STEPS = {
  request: 'requestWithdrawal',
  ask: 'withdrawFromCard',
  lookUp: 'lookUpWithdrawal',
  flagOverdue: 'flagWithdrawalOverdue',
  resolve: 'applyWithdrawalResolution',
};

/** A withdrawal from a card that has enough, or, if the case has no funds, too little. */
export const prepareWithdrawal: Prepare = async (kind, stack) => {
  const { mode, amountCents, funded, resolve } = kind;
  const cardCents = funded ? 2 * amountCents : amountCents - 1;
  const partner = await fundedPartner(stack);
  const { status, json: card, text } = await createCard(partner, { amount: cardCents }, { mode });
  assert.equal(status, 201, text);
  const cardId: string = card.id;
  await stack.client.workflow.getHandle(issueCardWorkflowId(cardId)).result();
  const tooLittle = { status: 402, code: 'insufficient_card_balance', end: null } as const;
  return {
    case: funded ? kind : { ...kind, endings: [tooLittle] },
    partner,
    key: randomUUID(),
    path: `/cards/${cardId}/withdrawals`,
    body: { amount: amountCents },
    workflowIdOf: (claim) => withdrawFromCardWorkflowId(claim.resource_id ?? ''),
    outcomes: { yes: 'succeeded', no: 'failed' },
    isOverdue: async (_, { resource_id: id }) =>
      (await readWithdrawalRow(stack, id ?? ''))?.overdue_since != null,

    async assertLeft(_, { resource_id }, { end }) {
      const withdrawalId = resource_id ?? '';
      const left = end === 'loaded' ? 'succeeded' : end;
      const { json } = await partner.call('GET', `/cards/${cardId}/withdrawals`, { mode });
      assert.deepEqual(
        json.data.map((one: { id: string; status: string }) => [one.id, one.status]),
        end === null ? [] : [[withdrawalId, left]],
      );
      const [, ...told] = await eventTypes(stack, cardId);
      assert.deepEqual(told, end === null ? [] : [`withdrawal.${left}`]);
      const taken = await query(
        stack.orm.em.fork(),
        `SELECT FROM simulated_network.operation WHERE token = $1 AND outcome = 'succeeded'`,
        [withdrawalId],
      );
      assert.equal(taken.length, end === 'loaded' || resolve !== undefined ? 1 : 0);
      const withdrawnCents = end === 'loaded' ? amountCents : 0;
      assert.equal(await balanceOfCard(stack.orm.em.fork(), cardId), cardCents - withdrawnCents);
      const { json: now } = await partner.call('GET', `/cards/${cardId}`, { mode });
      assert.equal(now.available_balance, now.balance);
      const spentCents = priceOf(cardCents) - withdrawnCents;
      await assertBalance(stack, partner, mode, { spentCents, heldCents: 0 });
    },
  };
};

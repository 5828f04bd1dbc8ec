import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { adjustBalance } from '../../../accounts/adjust-balance.ts';
import type { Mode } from '../../../domain/mode.ts';
import type { TransferDirection } from '../../../domain/transfer.ts';
import { query } from '../../../platform/db/sql.ts';
import { issueCardWorkflowId, transferWorkflowId } from '../../../workflows/messages.ts';
import { createCard, eventTypes, networkCardCount, readCardRow } from '../cards.ts';
import { assertBalance, balanceOfCard, fundedPartner, priceOf } from '../money.ts';
import type { TestPartner, TestStack } from '../stack.ts';
import { readTransferRow } from '../transfers.ts';
import type { Prepare } from './operations.ts';

export const ISSUANCE_STEPS = {
  request: 'requestIssuance',
  ask: 'issueCard',
  lookUp: 'lookUpIssuance',
  flagOverdue: 'flagIssuanceOverdue',
  resolve: 'applyIssuanceResolution',
};

export const prepareIssuance: Prepare = async (kind, stack) => {
  const { mode, amountCents, funded, resolve } = kind;
  const partner = funded ? await fundedPartner(stack) : await stack.createPartner();
  return {
    ...{ case: kind, partner, key: randomUUID() },
    path: '/cards',
    body: { amount: amountCents, external_ref: randomUUID() },
    workflowIdOf: (claim) => issueCardWorkflowId(claim.resource_id ?? ''),
    outcomes: { yes: 'issued', no: 'failed' },
    isOverdue: async (_, { resource_id: cardId }) =>
      (await readCardRow(stack, cardId ?? ''))?.overdue_since != null,

    async assertLeft(_, { resource_id }, { end }) {
      const cardId = resource_id ?? '';
      const status = end === 'loaded' ? 'active' : end;
      assert.equal((await readCardRow(stack, cardId))?.status ?? null, status);
      const cards = await partner.call('GET', '/cards', { mode });
      assert.deepEqual(
        cards.json.data.map((card: { id: string; status: string }) => [card.id, card.status]),
        end === null ? [] : [[cardId, status]],
      );
      const told = { loaded: ['card.issued'], failed: ['card.issue_failed'] };
      assert.deepEqual(await eventTypes(stack, cardId), end === null ? [] : told[end]);
      const isIssuedThere = mode === 'live' && (end === 'loaded' || resolve !== undefined);
      assert.equal(await networkCardCount(stack, cardId), isIssuedThere ? 1 : 0);
      if (!funded) return;
      const spentCents = end === 'loaded' ? priceOf(amountCents) : 0;
      await assertBalance(stack, partner, mode, { spentCents, heldCents: 0 });
    },
  };
};

export const TRANSFER_STEPS = {
  request: 'requestTransfer',
  ask: 'transfer',
  lookUp: 'lookUpTransfer',
  flagOverdue: 'flagTransferOverdue',
  resolve: 'applyTransferResolution',
};

/** A top-up or a withdrawal. If the case has no funds, the balance or the card has too little for it. */
export const prepareTransfer =
  (direction: TransferDirection): Prepare =>
  async (kind, stack) => {
    const { mode, amountCents, funded, resolve } = kind;
    const isTopUp = direction === 'topup';
    const cardCents = isTopUp ? 10_000 : funded ? 2 * amountCents : amountCents - 1;
    const partner =
      isTopUp && !funded ? await partnerWith(stack, mode, priceOf(cardCents)) : await fundedPartner(stack);
    const { status, json: card, text } = await createCard(partner, { amount: cardCents }, { mode });
    assert.equal(status, 201, text);
    const cardId: string = card.id;
    await stack.client.workflow.getHandle(issueCardWorkflowId(cardId)).result();
    const tooLittle = { status: 402, code: 'insufficient_card_balance', end: null } as const;
    return {
      case: isTopUp || funded ? kind : { ...kind, endings: [tooLittle] },
      partner,
      key: randomUUID(),
      path: `/cards/${cardId}/${direction}s`,
      body: { amount: amountCents },
      workflowIdOf: (claim) => transferWorkflowId(direction, claim.resource_id ?? ''),
      outcomes: { yes: 'succeeded', no: 'failed' },
      isOverdue: async (_, { resource_id: id }) =>
        (await readTransferRow(stack, id ?? ''))?.overdue_since != null,

      async assertLeft(_, { resource_id }, { end }) {
        const transferId = resource_id ?? '';
        const left = end === 'loaded' ? 'succeeded' : end;
        const { json } = await partner.call('GET', `/cards/${cardId}/${direction}s`, { mode });
        assert.deepEqual(
          json.data.map((one: { id: string; status: string }) => [one.id, one.status]),
          end === null ? [] : [[transferId, left]],
        );
        const [, ...told] = await eventTypes(stack, cardId);
        assert.deepEqual(told, end === null ? [] : [`${direction}.${left}`]);
        const isMadeThere = mode === 'live' && (end === 'loaded' || resolve !== undefined);
        const made = await query(
          stack.orm.em.fork(),
          `SELECT FROM simulated_network.operation WHERE token = $1 AND outcome = 'succeeded'`,
          [transferId],
        );
        assert.equal(made.length, isMadeThere ? 1 : 0);
        const movedCents = end === 'loaded' ? amountCents : 0;
        const leftCents = cardCents + (isTopUp ? movedCents : -movedCents);
        assert.equal(await balanceOfCard(stack.orm.em.fork(), cardId), leftCents);
        const { json: now } = await partner.call('GET', `/cards/${cardId}`, { mode });
        assert.equal(now.available_balance, now.balance);
        if (isTopUp && !funded) return;
        const costCents = isTopUp ? priceOf(amountCents, 'card_topup') : -amountCents;
        const spentCents = priceOf(cardCents) + (end === 'loaded' ? costCents : 0);
        await assertBalance(stack, partner, mode, { spentCents, heldCents: 0 });
      },
    };
  };

async function partnerWith(stack: TestStack, mode: Mode, amountCents: number): Promise<TestPartner> {
  const partner = await stack.createPartner();
  const adjustment = { partnerId: partner.id, mode, amountCents, reason: 'funds of a test', key: null };
  await adjustBalance(stack.operator, adjustment);
  return partner;
}

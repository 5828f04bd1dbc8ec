import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { adjustBalance } from '../../../accounts/adjust-balance.ts';
import type { Mode } from '../../../domain/mode.ts';
import { query } from '../../../platform/db/sql.ts';
import {
  issueCardWorkflowId,
  topUpCardWorkflowId,
  withdrawFromCardWorkflowId,
} from '../../../workflows/messages.ts';
import { createCard, eventTypes, networkCardCount, readCardRow } from '../cards.ts';
import { assertBalance, balanceOfCard, fundedPartner, priceOf } from '../money.ts';
import type { TestPartner, TestStack } from '../stack.ts';
import { readTopUpRow } from '../top-ups.ts';
import { readWithdrawalRow } from '../withdrawals.ts';
import type { Prepare } from './operations.ts';

/** The names of issueCard's steps. */
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

/** The names of topUpCard's steps. */
export const TOP_UP_STEPS = {
  request: 'requestTopUp',
  ask: 'topUpCard',
  lookUp: 'lookUpTopUp',
  flagOverdue: 'flagTopUpOverdue',
  resolve: 'applyTopUpResolution',
};

/** The names of withdrawFromCard's steps. */
export const WITHDRAWAL_STEPS = {
  request: 'requestWithdrawal',
  ask: 'withdrawFromCard',
  lookUp: 'lookUpWithdrawal',
  flagOverdue: 'flagWithdrawalOverdue',
  resolve: 'applyWithdrawalResolution',
};

const CARD_CENTS = 10_000;
const TRANSFERS = {
  topup: { workflowId: topUpCardWorkflowId, readRow: readTopUpRow },
  withdrawal: { workflowId: withdrawFromCardWorkflowId, readRow: readWithdrawalRow },
};

/** If the case has no funds, the account has too little for the top-up, or the card for the withdrawal. */
const prepareTransfer =
  (direction: keyof typeof TRANSFERS): Prepare =>
  async (kind, stack) => {
    const { mode, amountCents, funded, resolve } = kind;
    const { workflowId, readRow } = TRANSFERS[direction];
    const isTopUp = direction === 'topup';
    const withdrawnFromCents = funded ? 2 * amountCents : amountCents - 1;
    const cardCents = isTopUp ? CARD_CENTS : withdrawnFromCents;
    const hasFunds = funded || !isTopUp;
    const partner = hasFunds
      ? await fundedPartner(stack)
      : await partnerWith(stack, mode, priceOf(cardCents));
    const cardId = await issueCard(stack, partner, mode, cardCents);
    const path = `/cards/${cardId}/${direction}s`;
    const tooLittle = { status: 402, code: 'insufficient_card_balance', end: null } as const;
    return {
      ...{ case: funded || isTopUp ? kind : { ...kind, endings: [tooLittle] }, partner, key: randomUUID() },
      path,
      body: { amount: amountCents },
      workflowIdOf: (claim) => workflowId(claim.resource_id ?? ''),
      outcomes: { yes: 'succeeded', no: 'failed' },
      isOverdue: async (_, { resource_id: id }) => (await readRow(stack, id ?? ''))?.overdue_since != null,

      async assertLeft(_, { resource_id }, { end }) {
        const transferId = resource_id ?? '';
        const left = end === 'loaded' ? 'succeeded' : end;
        const { json } = await partner.call('GET', path, { mode });
        assert.deepEqual(
          json.data.map((one: { id: string; status: string }) => [one.id, one.status]),
          end === null ? [] : [[transferId, left]],
        );
        const [, ...told] = await eventTypes(stack, cardId);
        assert.deepEqual(told, end === null ? [] : [`${direction}.${left}`]);
        const isMovedThere = mode === 'live' && (end === 'loaded' || resolve !== undefined);
        assert.equal(await networkTransferCount(stack, transferId), isMovedThere ? 1 : 0);
        const movedCents = end === 'loaded' ? amountCents : 0;
        const onCardCents = isTopUp ? cardCents + movedCents : cardCents - movedCents;
        assert.equal(await balanceOfCard(stack.orm.em.fork(), cardId), onCardCents);
        const { json: card } = await partner.call('GET', `/cards/${cardId}`, { mode });
        assert.equal(card.available_balance, card.balance);
        if (!hasFunds) return;
        const toppedUpCents = end === 'loaded' ? priceOf(amountCents, 'card_topup') : 0;
        const spentCents = priceOf(cardCents) + (isTopUp ? toppedUpCents : -movedCents);
        await assertBalance(stack, partner, mode, { spentCents, heldCents: 0 });
      },
    };
  };
export const prepareTopUp = prepareTransfer('topup');
export const prepareWithdrawal = prepareTransfer('withdrawal');

async function partnerWith(stack: TestStack, mode: Mode, amountCents: number): Promise<TestPartner> {
  const partner = await stack.createPartner();
  const adjustment = { partnerId: partner.id, mode, amountCents, reason: 'funds of a test', key: null };
  await adjustBalance(stack.operator, adjustment);
  return partner;
}

/** An active card, whose workflow has ended. */
async function issueCard(
  stack: TestStack,
  partner: TestPartner,
  mode: Mode,
  amount: number,
): Promise<string> {
  const { status, json, text } = await createCard(partner, { amount }, { mode });
  assert.equal(status, 201, text);
  await stack.client.workflow.getHandle(issueCardWorkflowId(json.id)).result();
  return json.id;
}

/** How often the simulated network has made, and not refused, a transfer of ours. */
async function networkTransferCount({ orm }: TestStack, transferId: string): Promise<number> {
  const rows = await query(
    orm.em.fork(),
    `SELECT FROM simulated_network.operation WHERE token = $1 AND outcome = 'succeeded'`,
    [transferId],
  );
  return rows.length;
}

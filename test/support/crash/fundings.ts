import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { adjustBalance } from '../../../accounts/adjust-balance.ts';
import type { Mode } from '../../../domain/mode.ts';
import { query } from '../../../platform/db/sql.ts';
import { issueCardWorkflowId, topUpCardWorkflowId } from '../../../workflows/messages.ts';
import { createCard, eventTypes, networkCardCount, readCardRow } from '../cards.ts';
import { assertBalance, balanceOfCard, fundedPartner, priceOf } from '../money.ts';
import type { TestPartner, TestStack } from '../stack.ts';
import { readTopUpRow } from '../top-ups.ts';
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

const CARD_CENTS = 10_000;

export const prepareTopUp: Prepare = async (kind, stack) => {
  const { mode, amountCents, funded, resolve } = kind;
  const partner = funded ? await fundedPartner(stack) : await partnerWith(stack, mode, priceOf(CARD_CENTS));
  const cardId = await issueCard(stack, partner, mode);
  return {
    ...{ case: kind, partner, key: randomUUID() },
    path: `/cards/${cardId}/topups`,
    body: { amount: amountCents },
    workflowIdOf: (claim) => topUpCardWorkflowId(claim.resource_id ?? ''),
    outcomes: { yes: 'succeeded', no: 'failed' },
    isOverdue: async (_, { resource_id: id }) => (await readTopUpRow(stack, id ?? ''))?.overdue_since != null,

    async assertLeft(_, { resource_id }, { end }) {
      const topUpId = resource_id ?? '';
      const status = end === 'loaded' ? 'succeeded' : end;
      const { json } = await partner.call('GET', `/cards/${cardId}/topups`, { mode });
      assert.deepEqual(
        json.data.map((topUp: { id: string; status: string }) => [topUp.id, topUp.status]),
        end === null ? [] : [[topUpId, status]],
      );
      const [, ...told] = await eventTypes(stack, cardId);
      assert.deepEqual(told, end === null ? [] : [`topup.${status}`]);
      const isLoadedThere = mode === 'live' && (end === 'loaded' || resolve !== undefined);
      assert.equal(await networkTopUpCount(stack, topUpId), isLoadedThere ? 1 : 0);
      const loadedCents = end === 'loaded' ? amountCents : 0;
      assert.equal(await balanceOfCard(stack.orm.em.fork(), cardId), CARD_CENTS + loadedCents);
      if (!funded) return;
      const spentCents = priceOf(CARD_CENTS) + (end === 'loaded' ? priceOf(amountCents, 'card_topup') : 0);
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

/** An active card, whose workflow has ended. */
async function issueCard(stack: TestStack, partner: TestPartner, mode: Mode): Promise<string> {
  const { status, json, text } = await createCard(partner, { amount: CARD_CENTS }, { mode });
  assert.equal(status, 201, text);
  await stack.client.workflow.getHandle(issueCardWorkflowId(json.id)).result();
  return json.id;
}

/** How often the simulated network has taken, and not refused, a top-up of ours. */
async function networkTopUpCount({ orm }: TestStack, topUpId: string): Promise<number> {
  const rows = await query(
    orm.em.fork(),
    `SELECT FROM simulated_network.operation WHERE token = $1 AND outcome = 'succeeded'`,
    [topUpId],
  );
  return rows.length;
}

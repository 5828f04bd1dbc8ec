import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { siblingId } from '../../../domain/ids.ts';
import { issueCardWorkflowId } from '../../../workflows/messages.ts';
import { eventTypes, networkCardCount, readCardRow } from '../workflows/cards.ts';
import { assertBalance, fundedPartner, priceOf } from '../workflows/money.ts';
import type { Prepare } from './operations.ts';

/** The names of issueCard's steps. */
export const ISSUANCE_STEPS = {
  open: 'openIssuance',
  settle: 'settleIssuance',
  ask: 'issueCard',
  lookUp: 'lookUpIssuance',
  flagOverdue: 'flagIssuanceOverdue',
  settleByHand: 'settleIssuanceByHand',
};

export const prepareIssuance: Prepare = async (kind, stack) => {
  const { mode, amountCents, funded, resolve } = kind;
  const partner = funded ? await fundedPartner(stack) : await stack.createPartner();
  const cardIdOf = (claimId: string) => siblingId('card', claimId);
  return {
    ...{ case: kind, partner, key: randomUUID() },
    path: '/cards',
    body: { amount: amountCents, external_ref: randomUUID() },
    workflowIdOf: (claimId) => issueCardWorkflowId(cardIdOf(claimId)),
    outcomes: { yes: 'issued', no: 'failed' },
    isOverdue: async (_, claimId) => (await readCardRow(stack, cardIdOf(claimId)))?.overdue_since != null,

    async assertLeft(_, claimId, { end }) {
      const cardId = cardIdOf(claimId);
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

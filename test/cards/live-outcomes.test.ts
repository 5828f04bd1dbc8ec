import assert from 'node:assert/strict';
import { query } from '../../platform/db/sql.ts';
import { issueCardWorkflowId } from '../../workflows/messages.ts';
import { createCard, eventTypes, readCardRow } from '../support/cards.ts';
import { assertBalance, assertLedgerClean, fundedPartner, priceOf } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { Answer, TestPartner, TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

/** The table of docs/partners/testing.md. */
const OUTCOMES = [
  { digits: 0, answer: 201, ends: 'active' },
  { digits: 41, answer: 202, ends: 'active' },
  { digits: 42, answer: 402, ends: null },
  { digits: 43, answer: 202, ends: 'failed' },
  { digits: 44, answer: 201, ends: 'active' },
  { digits: 45, answer: 202, ends: 'active' },
  { digits: 46, answer: 202, ends: 'active' },
  { digits: 47, answer: 202, ends: 'funding_pending' },
  { digits: 48, answer: 201, ends: 'active' },
] as const;

describe('live issuances', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    partner = await fundedPartner(stack);
  });

  const network = (text: string, values: unknown[]) => query(stack.orm.em.fork(), text, values);
  const untilSettled = ({ json }: Answer) =>
    until('the card is settled', async () => {
      const row = await readCardRow(stack, json.id);
      return row?.status !== 'funding_pending' && row;
    });

  /** What happens to the network's callbacks about a card. */
  const callbacks: Record<string, (cardId: string) => Promise<unknown>> = {
    'arrive as the network sends them': async () => {},
    'are lost': (cardId) => network('DELETE FROM simulated_network.callback WHERE token = $1', [cardId]),
    'are many and too early': (cardId) =>
      network(
        `INSERT INTO simulated_network.callback (token, due_at)
         SELECT $1, clock_timestamp() + delay * interval '400 milliseconds' FROM generate_series(0, 9) AS delay`,
        [cardId],
      ),
  };
  for (const [how, disturb] of Object.entries(callbacks)) {
    it(`reach their outcomes simultaneously if callbacks ${how}`, async () => {
      const amounts = OUTCOMES.map(({ digits }) => 10_000 + digits);
      const cards = await Promise.all(
        amounts.map(async (amountCents) => {
          const first = await createCard(partner, { amount: amountCents }, { mode: 'live' });
          if (first.status === 202) await disturb(first.json.id);
          return { amountCents, first };
        }),
      );

      let spentCents = 0;
      let heldCents = 0;
      for (const { amountCents, first } of cards) {
        const { answer, ends } = OUTCOMES.find(({ digits }) => digits === amountCents % 100) ?? {};
        assert.equal(first.status, answer, first.text);
        if (ends === null) continue;
        if (ends === 'active' || ends === 'failed') {
          assert.equal((await untilSettled(first)).status, ends);
          await stack.client.workflow.getHandle(issueCardWorkflowId(first.json.id)).result();
        }
        const told = { active: ['card.issued'], failed: ['card.issue_failed'], funding_pending: [] };
        assert.deepEqual(await eventTypes(stack, first.json.id), told[ends ?? 'funding_pending']);
        if (ends === 'active') spentCents += priceOf(amountCents);
        if (ends === 'funding_pending') heldCents += priceOf(amountCents);
      }
      await assertBalance(stack, partner, 'live', { spentCents, heldCents });
      await assertLedgerClean(stack);
    });
  }
});

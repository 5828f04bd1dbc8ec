import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { networkIdOf, sendAsNetwork } from '../support/api/network-events.ts';
import { authorizedCard } from '../support/authorizations.ts';
import { createCard } from '../support/cards.ts';
import { fundedPartner } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { Answer, TestPartner, TestStack } from '../support/stack.ts';
import { countStatements } from '../support/statements.ts';

/** Of the same request. A connection's first transaction prepares BEGIN, which is one more. */
const TIMES = 20;
const live = { mode: 'live' } as const;
const CONTROLS = {
  blocked_categories: ['7995'],
  spending_limits: [
    { amount: 1_000_000, interval: 'daily' },
    { amount: 1_000_000, interval: 'monthly', categories: ['5812'] },
  ],
};

describe('a decision', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack();
    partner = await fundedPartner(stack, 100_000);
  });

  /** The statements of the request that sent the fewest. The notification is sent after the answer. */
  async function fewest(request: () => Promise<Answer>): Promise<string[]> {
    const statements = countStatements(stack.config.databaseUrl);
    try {
      let least: string[] | undefined;
      for (let n = 0; n < TIMES; n++) {
        const { status, headers, text } = await request();
        assert.ok(status < 300, text);
        const sent = statements
          .ofRequest(headers.get('Request-Id'))
          .filter((statement) => !statement.includes('pg_notify'));
        assert.ok(sent.length > 0, 'no statement was counted');
        if (least === undefined || sent.length < least.length) least = sent;
      }
      return least ?? [];
    } finally {
      statements.stop();
    }
  }

  const assertThree = (sent: string[]) => {
    assert.equal(sent.length, 3, sent.join('\n\n'));
    assert.match(sent[0] ?? '', /lock_(test_card|booking)_terms/);
    assert.equal(sent[2], 'commit');
  };

  for (const controls of [null, CONTROLS]) {
    const how = controls === null ? '' : ', with spending controls as well';
    it(`of test mode takes three round trips to PostgreSQL, approved or declined${how}`, async () => {
      const card = await authorizedCard(partner, 10_000);
      await partner.call('PATCH', `/cards/${card.id}`, { body: { spending_controls: controls } });
      assertThree(await fewest(() => card.authorize(10)));
      assertThree(await fewest(() => card.authorize(10, {}, { idempotencyKey: randomUUID() })));
      assertThree(await fewest(() => card.authorize(1_000_000)));
    });

    it(`of the network's request takes three once the process knows the card${how}`, async () => {
      const cardId = (await createCard(partner, { amount: 10_000 }, live)).json.id;
      await partner.call('PATCH', `/cards/${cardId}`, { ...live, body: { spending_controls: controls } });
      const networkCardId = await networkIdOf(stack, cardId);
      const ask = (type: string, amountCents: number, more: object = {}) =>
        sendAsNetwork(
          stack,
          '/network/authorizations',
          JSON.stringify({
            ...{ networkCardId, networkTransactionId: randomUUID(), currency: 'USD', type, amountCents },
            ...more,
          }),
        );
      assertThree(await fewest(() => ask('authorization', 10)));
      assertThree(await fewest(() => ask('authorization', 1_000_000)));
      const networkTransactionId = randomUUID();
      await ask('authorization', 10, { networkTransactionId });
      assertThree(await fewest(() => ask('increment', 10, { networkAuthorizationId: networkTransactionId })));
    });
  }
});

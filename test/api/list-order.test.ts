import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { assertAddsUp } from '../support/api/balance-changes.ts';
import { networkIdOf, networkTransaction, sendAsNetwork } from '../support/api/network-events.ts';
import { createCard } from '../support/cards.ts';
import { fundedPartner } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { Answer, TestStack } from '../support/stack.ts';
import { transfer } from '../support/transfers.ts';

const AT_ONCE = 8;

describe('a list of things that were made at once', () => {
  let stack: TestStack;
  before(async () => {
    stack = await sharedStack();
  });

  for (const mode of ['test', 'live'] as const) {
    it(`is sorted newest first by created, for every resource in ${mode} mode, and changes of the balance add up`, async () => {
      const partner = await fundedPartner(stack, 10_000_000);
      const atOnce = async (status: number, ask: (i: number) => Promise<Answer>) => {
        const answers = await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => ask(i)));
        for (const answer of answers) assert.equal(answer.status, status, answer.text);
        return answers.map(({ json }) => json);
      };
      const [{ id: cardId }] = await atOnce(201, () => createCard(partner, { amount: 10_000 }, { mode }));
      await atOnce(201, () => transfer('topup', { partner, mode, cardId }, 1_000));
      await atOnce(201, () => transfer('withdrawal', { partner, mode, cardId }, 100));
      const networkId = mode === 'live' ? await networkIdOf(stack, cardId) : '';
      await atOnce(mode === 'live' ? 200 : 201, (i) =>
        mode === 'live'
          ? sendAsNetwork(stack, '/network/transactions', JSON.stringify(networkTransaction(networkId, {})))
          : partner.call('POST', `/test/cards/${cardId}/simulate-transaction`, {
              body: { type: 'purchase', amount: 100 },
              // With a key and without, as these are two ways to book one.
              ...(i % 2 === 0 && { idempotencyKey: randomUUID() }),
            }),
      );

      for (const [path, atLeast] of [
        ['/cards', AT_ONCE],
        ...['topups', 'withdrawals', 'transactions'].map((name) => [`/cards/${cardId}/${name}`, AT_ONCE]),
        ['/events', 4 * AT_ONCE],
        ['/balance/transactions', 5 * AT_ONCE],
      ] as [string, number][]) {
        const { json, text } = await partner.call('GET', `${path}?limit=100`, { mode });
        const created: string[] = json.data.map((item: { created: string }) => item.created);
        assert.ok(created.length >= atLeast, `${path} has ${created.length}: ${text}`);
        assert.deepEqual(created, created.toSorted().reverse(), `${mode} ${path} is out of order`);
        if (path === '/balance/transactions') await assertAddsUp(partner, json.data, mode);
      }
    });
  }
});

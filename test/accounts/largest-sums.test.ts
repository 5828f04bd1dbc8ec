import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { adjustBalance } from '../../accounts/adjust-balance.ts';
import { expectError, expectReplay } from '../support/api/answers.ts';
import { MAX, negotiatePlan } from '../support/api/fees.ts';
import { createCard } from '../support/cards.ts';
import { balanceOf, fundedPartner } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestStack } from '../support/stack.ts';

describe('a request that would take a sum past the largest integer', () => {
  let stack: TestStack;
  before(async () => {
    stack = await sharedStack();
  });

  for (const mode of ['test', 'live'] as const) {
    it(`changes nothing in ${mode} mode, where a block gets a 409 that is replayed and a top-up gets 400`, async () => {
      const partner = await fundedPartner(stack, 10_000);
      await negotiatePlan(stack, partner, {});
      const cards = [
        (await createCard(partner, { amount: 1_000 }, { mode })).json,
        (await createCard(partner, { amount: 1_000 }, { mode })).json,
      ];
      const adjust = (amountCents: number) =>
        adjustBalance(stack.operator, {
          ...{ partnerId: partner.id, mode, amountCents, reason: 'a test', key: null },
        });
      await adjust(MAX - 8_000);
      assert.deepEqual(await balanceOf(partner, mode), [MAX, 0, MAX]);

      const path = `/cards/${cards[0].id}/block`;
      const idempotencyKey = randomUUID();
      const refused = await partner.call('POST', path, { mode, idempotencyKey });
      expectError(refused, 'invalid_state');
      expectError(await partner.call('POST', path, { mode }), 'invalid_state');
      const topUp = { mode, body: { amount: MAX - 999 }, idempotencyKey: randomUUID() };
      const tooMuch = await partner.call('POST', `/cards/${cards[1].id}/topups`, topUp);
      expectError(tooMuch, 'validation_failed', ['amount']);
      for (const card of cards) {
        assert.deepEqual((await partner.call('GET', `/cards/${card.id}`, { mode })).json, card);
      }
      assert.deepEqual(await balanceOf(partner, mode), [MAX, 0, MAX]);

      await adjust(-1_000);
      expectReplay(await partner.call('POST', path, { mode, idempotencyKey }), refused);
      const blocked = await partner.call('POST', path, { mode });
      assert.deepEqual([blocked.status, blocked.json.balance], [200, 0]);
      assert.deepEqual(await balanceOf(partner, mode), [MAX, 0, MAX]);
    });
  }
});

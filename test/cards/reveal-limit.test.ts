import assert from 'node:assert/strict';
import { updatePartner } from '../../accounts/partners.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { expectError } from '../support/api/answers.ts';
import { issueCard, moveRevealsBack, reveal, revealCount, revealingPartner } from '../support/api/reveals.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';

describe('the limit of reveals', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    partner = await revealingPartner(stack);
  });

  it('answers 429 from the fourth reveal in a minute on, across all cards of a mode', async () => {
    const cards = {
      test: [await issueCard(partner, 'test'), await issueCard(partner, 'test')],
      live: [await issueCard(partner, 'live')],
    };
    for (const mode of ['test', 'live'] as const) {
      for (let turn = 0; turn < 3; turn++) {
        const cardId = cards[mode][turn % cards[mode].length] ?? '';
        assert.equal((await reveal(partner, cardId, mode)).status, 200);
      }
      for (const cardId of cards[mode]) {
        const answer = await reveal(partner, cardId, mode);
        expectError(answer, 'reveal_limit_reached');
        assert.equal(answer.headers.get('cache-control'), 'no-store');
        const seconds = Number(answer.headers.get('retry-after'));
        assert.ok(Number.isInteger(seconds) && seconds >= 1 && seconds <= 60, String(seconds));
      }
    }
  });

  it('allows one more as soon as the third last reveal is a minute old', async () => {
    const cardId = await issueCard(partner, 'test');
    for (const seconds of [20, 0, 0]) {
      assert.equal((await reveal(partner, cardId)).status, 200);
      await moveRevealsBack(stack, partner, seconds);
    }
    // Now they are 20, 0 and 0 s old.
    const refused = await reveal(partner, cardId);
    expectError(refused, 'reveal_limit_reached');
    const seconds = Number(refused.headers.get('retry-after'));
    assert.ok(seconds >= 1 && seconds <= 40, String(seconds));
    await moveRevealsBack(stack, partner, seconds);
    assert.equal((await reveal(partner, cardId)).status, 200);
    expectError(await reveal(partner, cardId), 'reveal_limit_reached');
  });

  it('allows 20 in 24 hours, and the next as soon as the first of them is that old', async () => {
    const cardId = await issueCard(partner, 'test');
    for (let turn = 0; turn < 20; turn++) {
      assert.equal((await reveal(partner, cardId)).status, 200);
      await moveRevealsBack(stack, partner, 60);
    }
    const refused = await reveal(partner, cardId);
    expectError(refused, 'reveal_limit_reached');
    const seconds = Number(refused.headers.get('retry-after'));
    assert.ok(seconds > 23 * 3_600 && seconds <= 24 * 3_600 - 20 * 60, String(seconds));
    await moveRevealsBack(stack, partner, seconds);
    assert.equal((await reveal(partner, cardId)).status, 200);
    expectError(await reveal(partner, cardId), 'reveal_limit_reached');
  });

  for (const mode of ['test', 'live'] as const) {
    it(`allows exactly three of 50 simultaneous requests in ${mode} mode`, async () => {
      const cards = await Promise.all([issueCard(partner, mode), issueCard(partner, mode)]);
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, index) => reveal(partner, cards[index % 2] ?? '', mode)),
      );
      const passed = answers.filter(({ status }) => status === 200);
      assert.equal(passed.length, 3);
      for (const answer of answers) if (answer.status !== 200) expectError(answer, 'reveal_limit_reached');
      assert.equal(await revealCount(stack, partner, mode), 3);
    });
  }

  it('does not count refused requests', async () => {
    const cardId = await issueCard(partner, 'test');
    const pending = await issueCard(partner, 'live', { amount: 1_047 });
    await reveal(partner, newId('card'));
    await reveal(partner, pending, 'live');
    await updatePartner(stack.operator, partner.id, { secureDetailsEnabled: false });
    await reveal(partner, cardId);
    await updatePartner(stack.operator, partner.id, { secureDetailsEnabled: true });
    assert.deepEqual(
      [await revealCount(stack, partner, 'test'), await revealCount(stack, partner, 'live')],
      [0, 0],
    );
    for (let turn = 0; turn < 5; turn++) await reveal(partner, cardId);
    assert.equal(await revealCount(stack, partner, 'test'), 3);
  });
});

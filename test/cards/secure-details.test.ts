import assert from 'node:assert/strict';
import { updatePartner } from '../../accounts/partners.ts';
import type { Mode } from '../../domain/mode.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { passesLuhn } from '../support/adapters/luhn.ts';
import { expectError } from '../support/api/answers.ts';
import { issueCard, moveRevealsBack, reveal, revealCount, revealingPartner } from '../support/api/reveals.ts';
import { mistakeNetworkCard, settledCard } from '../support/cards.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';

describe('GET /cards/{cardId}/secure-details', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    partner = await revealingPartner(stack);
  });

  for (const [mode, prefix] of [
    ['test', '4242'],
    ['live', '424242'],
  ] as const) {
    it(`answers 200 with the ${mode} card's number, the same each time, and forbids caching`, async () => {
      const cardId = await issueCard(partner, mode, {
        cardholder_first_name: 'Ada',
        cardholder_last_name: 'Lovelace',
      });
      const { json: card } = await partner.call('GET', `/cards/${cardId}`, { mode });
      const answer = await reveal(partner, cardId, mode);
      assert.equal(answer.status, 200, answer.text);
      assert.equal(answer.headers.get('cache-control'), 'no-store');
      const { pan, cvv, ...rest } = answer.json;
      assert.match(pan, new RegExp(`^${prefix}[0-9]{${16 - prefix.length}}$`));
      assert.ok(passesLuhn(pan));
      assert.match(cvv, /^[0-9]{3}$/);
      assert.equal(pan.slice(-4), card.last4);
      assert.deepEqual(rest, {
        card_id: cardId,
        exp_month: String(card.exp_month).padStart(2, '0'),
        exp_year: String(card.exp_year),
        cardholder_name: 'Ada Lovelace',
      });
      assert.equal((await reveal(partner, cardId, mode)).text, answer.text);
    });
  }

  it('returns as much of the name as there is', async () => {
    const nameOf = async (body: object) =>
      (await reveal(partner, await issueCard(partner, 'test', body))).json.cardholder_name;
    assert.equal(await nameOf({}), null);
    assert.equal(await nameOf({ cardholder_last_name: 'Lovelace' }), 'Lovelace');
  });

  it('answers 403 before anything else if it is not enabled, from the moment it is switched off', async () => {
    const cardId = await issueCard(partner, 'test');
    const switchTo = (secureDetailsEnabled: boolean) =>
      updatePartner(stack.operator, partner.id, { secureDetailsEnabled });
    await switchTo(false);
    for (const id of [cardId, newId('card'), 'x']) {
      expectError(await reveal(partner, id), 'secure_details_disabled');
    }
    await switchTo(true);
    assert.equal((await reveal(partner, cardId)).status, 200);
    await switchTo(false);
    expectError(await reveal(partner, cardId), 'secure_details_disabled');
    const byDefault = await stack.createPartner();
    expectError(await reveal(byDefault, cardId), 'secure_details_disabled');
  });

  it('answers 409 and names the status, except for active and frozen cards', async () => {
    const refused = async (cardId: string, status: string, mode: Mode = 'live') => {
      const answer = await reveal(partner, cardId, mode);
      expectError(answer, 'invalid_state');
      assert.match(answer.json.error.message, new RegExp(`is ${status}\\. Only active and frozen`));
    };
    await refused(await issueCard(partner, 'live', { amount: 1_047 }), 'funding_pending');
    const failing = await issueCard(partner, 'live', { amount: 1_043 });
    assert.equal((await settledCard(partner, failing)).status, 'failed');
    await refused(failing, 'failed');

    const cardId = await issueCard(partner, 'test');
    const active = await reveal(partner, cardId);
    assert.equal((await partner.call('POST', `/cards/${cardId}/freeze`)).status, 200);
    assert.equal((await reveal(partner, cardId)).text, active.text);
    assert.equal((await partner.call('POST', `/cards/${cardId}/block`)).status, 200);
    await refused(cardId, 'blocked', 'test');
  });

  it("answers 409 as long as the network has not confirmed the card's id, and counts nothing", async () => {
    const cardId = await issueCard(partner, 'live');
    await mistakeNetworkCard(stack, cardId);
    const answer = await reveal(partner, cardId, 'live');
    expectError(answer, 'invalid_state');
    assert.match(answer.json.error.message, /finding out from the card network which of its cards this is/);
    assert.equal(await revealCount(stack, partner, 'live'), 0);
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

  for (const [what, waits, least, most] of [
    ['one more as soon as the third last reveal is a minute old', [20, 0, 0], 1, 40],
    [
      '20 in 24 hours, and the next as soon as the first of them is that old',
      Array<number>(20).fill(60),
      23 * 3_600 + 1,
      24 * 3_600 - 20 * 60,
    ],
  ] as const) {
    it(`allows ${what}`, async () => {
      const cardId = await issueCard(partner, 'test');
      for (const seconds of waits) {
        assert.equal((await reveal(partner, cardId)).status, 200);
        await moveRevealsBack(stack, partner, seconds);
      }
      const refused = await reveal(partner, cardId);
      expectError(refused, 'reveal_limit_reached');
      const seconds = Number(refused.headers.get('retry-after'));
      assert.ok(seconds >= least && seconds <= most, String(seconds));
      await moveRevealsBack(stack, partner, seconds);
      assert.equal((await reveal(partner, cardId)).status, 200);
      expectError(await reveal(partner, cardId), 'reveal_limit_reached');
    });
  }

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

import assert from 'node:assert/strict';
import { newId } from '../../../crypto/new-id.ts';
import { expectError } from '../../support/api/answers.ts';
import { createCard } from '../../support/cards.ts';
import { fundedPartner } from '../../support/money.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';

describe('GET /cards/{cardId}', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let cardId: string;
  before(async () => {
    stack = await sharedStack();
    partner = await fundedPartner(stack, 10_000);
    cardId = (await createCard(partner, { amount: 1_000 })).json.id;
  });

  it('returns the card', async () => {
    const { status, json } = await partner.call('GET', `/cards/${cardId}`);
    assert.deepEqual([status, json.id, json.status, json.balance], [200, cardId, 'active', 1_000]);
  });

  it('answers 404 to another account', async () => {
    const other = await stack.createPartner();
    expectError(await other.call('GET', `/cards/${cardId}`), 'card_not_found');
  });

  it('answers 404 for a test card to a live key, and for a live card to a test key', async () => {
    const live = await createCard(partner, { amount: 1_000 }, { mode: 'live' });
    assert.equal(live.status, 201, live.text);
    expectError(await partner.call('GET', `/cards/${cardId}`, { mode: 'live' }), 'card_not_found');
    expectError(await partner.call('GET', `/cards/${live.json.id}`), 'card_not_found');
    assert.equal((await partner.call('GET', `/cards/${live.json.id}`, { mode: 'live' })).status, 200);
  });

  it('answers 404 for unknown ids of the right form', async () => {
    expectError(await partner.call('GET', `/cards/${newId('card')}`), 'card_not_found');
    expectError(await partner.call('GET', `/cards/card_${'z'.repeat(26)}`), 'card_not_found');
  });

  const SHAPES: Record<string, () => string> = {
    'another prefix': () => cardId.replace('card_', 'topup_'),
    'no prefix': () => cardId.slice(5),
    'upper case': () => cardId.toUpperCase(),
    'a space around it': () => `%20${cardId}`,
    'a line feed after it': () => `${cardId}%0A`,
    'a NUL in it': () => `${cardId.slice(0, 20)}%00${cardId.slice(21)}`,
    'a letter that is not used': () => `${cardId.slice(0, -1)}u`,
    'one character more': () => `${cardId}0`,
    'one character less': () => cardId.slice(0, -1),
    'malformed percent-encoding': () => '%E0%A4%A',
    'a percent sign': () => '%',
    'a surrogate, percent-encoded': () => '%ED%A0%80',
    'an encoded slash': () => `x%2f..%2f${cardId}`,
    SQL: () => `'%20OR%201=1--`,
    '10,000 characters': () => 'a'.repeat(10_000),
  };
  for (const [what, id] of Object.entries(SHAPES)) {
    it(`answers 404 for an id with ${what}`, async () => {
      expectError(await partner.call('GET', `/cards/${id()}`), 'card_not_found');
    });
  }

  it('refuses query parameters', async () => {
    expectError(await partner.call('GET', `/cards/${cardId}?expand=x`), 'validation_failed', ['expand']);
  });
});

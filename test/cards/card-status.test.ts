import assert from 'node:assert/strict';
import type { CardStatus } from '../../domain/card-status.ts';
import type { Mode } from '../../domain/mode.ts';
import { expectError } from '../support/api/answers.ts';
import { cardIn, changeStatus, networkStatus, VERBS, type Verb } from '../support/card-status.ts';
import { eventTypes } from '../support/cards.ts';
import { fundedPartner } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';

/** What each makes of a card (docs/partners/card-status.md); in every other status it is refused. */
const ALLOWED: Record<Verb, Partial<Record<CardStatus, CardStatus>>> = {
  freeze: { active: 'frozen' },
  unfreeze: { frozen: 'active' },
  block: { active: 'blocked', frozen: 'blocked' },
};
const STATUSES: readonly CardStatus[] = ['funding_pending', 'active', 'frozen', 'blocked', 'failed'];
const EVENTS: Record<Verb, string> = {
  freeze: 'card.frozen',
  unfreeze: 'card.unfrozen',
  block: 'card.blocked',
};

describe('POST /cards/{cardId}/freeze, unfreeze and block', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack();
    partner = await fundedPartner(stack, 10_000_000);
  });

  const read = async (cardId: string, mode: Mode) =>
    (await partner.call('GET', `/cards/${cardId}`, { mode })).json;

  for (const mode of ['test', 'live'] as const) {
    for (const status of STATUSES) {
      const refused = VERBS.filter((verb) => ALLOWED[verb][status] === undefined);
      it(`refuses ${refused.join(', ')} of a card that is ${status} with 409 in ${mode} mode`, async () => {
        const cardId = await cardIn(stack, partner, mode, status);
        const card = await read(cardId, mode);
        const events = await eventTypes(stack, cardId);
        for (const verb of refused) {
          const answer = await changeStatus(partner, cardId, verb, { mode });
          expectError(answer, 'invalid_state');
          assert.ok(answer.json.error.message.startsWith(`The card is ${status}. `), answer.text);
        }
        assert.deepEqual(await read(cardId, mode), card);
        assert.deepEqual(await eventTypes(stack, cardId), events);
      });

      for (const verb of VERBS) {
        const to = ALLOWED[verb][status];
        if (to === undefined) continue;
        it(`makes a card that is ${status} ${to} on ${verb} in ${mode} mode, with an event of it`, async () => {
          const cardId = await cardIn(stack, partner, mode, status);
          const card = await read(cardId, mode);
          const events = await eventTypes(stack, cardId);
          const { json, text } = await changeStatus(partner, cardId, verb, { mode });
          const balance = to === 'blocked' ? 0 : 10_000;
          assert.deepEqual(json, { ...card, status: to, balance, available_balance: balance }, text);
          assert.deepEqual(await read(cardId, mode), json);
          assert.deepEqual(await eventTypes(stack, cardId), [...events, EVENTS[verb]]);
          const newest = await partner.call('GET', `/events?limit=1&card_id=${cardId}`, { mode });
          const [{ data, mode: of }] = newest.json.data;
          assert.deepEqual([data, of], [{ card: json }, mode]);
          assert.equal(await networkStatus(stack, cardId), mode === 'live' ? to : undefined);
        });
      }
    }
  }
});

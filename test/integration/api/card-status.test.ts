import assert from 'node:assert/strict';
import { query } from '../../../db/sql.ts';
import type { CardStatus } from '../../../domain/card-status.ts';
import type { Mode } from '../../../domain/mode.ts';
import { expectError } from '../../support/api/answers.ts';
import {
  cardIn,
  changeStatus,
  networkStatus,
  statusClaims,
  VERBS,
  type Verb,
} from '../../support/card-status.ts';
import { eventTypes } from '../../support/cards.ts';
import { fundedPartner } from '../../support/money.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { Answer, TestPartner, TestStack } from '../../support/stack.ts';

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
    for (const verb of VERBS) {
      for (const status of STATUSES) {
        const to = ALLOWED[verb][status];
        it(`${to ? `makes a card that is ${status} ${to} on ${verb}` : `refuses ${verb} of a card that is ${status} with 409`} in ${mode} mode`, async () => {
          const cardId = await cardIn(stack, partner, mode, status);
          const card = await read(cardId, mode);
          const events = await eventTypes(stack, cardId);
          const answer = await changeStatus(partner, cardId, verb, { mode });

          if (to === undefined) {
            expectError(answer, 'invalid_state');
            assert.ok(answer.json.error.message.startsWith(`The card is ${status}. `), answer.text);
            assert.deepEqual(await read(cardId, mode), card);
            assert.deepEqual(await eventTypes(stack, cardId), events);
          } else {
            assert.equal(answer.status, 200, answer.text);
            assert.equal(answer.headers.get('Idempotent-Replayed'), null);
            const balance = to === 'blocked' ? 0 : 10_000;
            assert.deepEqual(answer.json, { ...card, status: to, balance, available_balance: balance });
            assert.deepEqual(await read(cardId, mode), answer.json);
            assert.deepEqual(await eventTypes(stack, cardId), [...events, EVENTS[verb]]);
            assert.equal(await networkStatus(stack, cardId), mode === 'live' ? to : undefined);
          }
        });
      }
    }

    it(`answers 404 in ${mode} mode for a card of another account or mode, and stores nothing under the key`, async () => {
      const cardId = await cardIn(stack, partner, mode, 'active');
      const other = await fundedPartner(stack, 1);
      for (const verb of VERBS) {
        expectError(await changeStatus(other, cardId, verb, { mode, idempotencyKey: 'k' }), 'card_not_found');
        const otherMode = mode === 'test' ? 'live' : 'test';
        expectError(await changeStatus(partner, cardId, verb, { mode: otherMode }), 'card_not_found');
      }
      assert.deepEqual(await statusClaims(stack, cardId), []);
      assert.equal((await read(cardId, mode)).status, 'active');
    });

    it(`writes events with the card of the response in ${mode} mode`, async () => {
      const cardId = await cardIn(stack, partner, mode, 'active');
      const answers: Answer[] = [];
      for (const verb of ['freeze', 'unfreeze', 'block'] as const) {
        answers.push(await changeStatus(partner, cardId, verb, { mode }));
      }
      const bodies = await eventBodies(stack, cardId);
      assert.deepEqual(
        bodies.slice(-3).map(({ type, data }) => ({ type, data })),
        (['freeze', 'unfreeze', 'block'] as const).map((verb, index) => ({
          type: EVENTS[verb],
          data: { card: answers[index]?.json },
        })),
      );
      for (const { id, mode: of, created } of bodies) {
        assert.match(id, /^evt_[0-9a-z]{26}$/);
        assert.equal(of, mode);
        assert.equal(new Date(created).toISOString(), created);
      }
    });
  }
});

async function eventBodies(stack: TestStack, cardId: string) {
  const rows = await query<{ body: string }>(
    stack.orm.em.fork(),
    'SELECT body FROM event WHERE card_id = $1 ORDER BY id',
    [cardId],
  );
  return rows.map(({ body }) => JSON.parse(body));
}

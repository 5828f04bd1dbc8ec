import assert from 'node:assert/strict';
import type { CardStatus } from '../../domain/card-status.ts';
import type { Mode } from '../../domain/mode.ts';
import { expectError, expectReplay } from '../support/api/answers.ts';
import { cardIn, changeStatus } from '../support/card-status.ts';
import { createCard, eventTypes } from '../support/cards.ts';
import { fundedPartner } from '../support/money.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { CallOptions, TestPartner, TestStack } from '../support/stack.ts';

const PERSON = { card_name: 'Ads', email: 'ada@example.com', metadata: { team: 'marketing', order: '4711' } };

describe('PATCH /cards/{cardId}', () => {
  let stack: TestStack;
  let partner: TestPartner;
  /** A card that nothing changes. */
  // biome-ignore lint/suspicious/noExplicitAny: a card as the API gives it.
  let unchanged: any;
  before(async () => {
    stack = await sharedStack();
    partner = await fundedPartner(stack, 10_000_000);
    unchanged = await newCard(PERSON);
  });

  const update = (cardId: string, body: unknown, options: CallOptions = {}) =>
    partner.call('PATCH', `/cards/${cardId}`, { body, ...options });
  const read = async (cardId: string, mode: Mode = 'test') =>
    (await partner.call('GET', `/cards/${cardId}`, { mode })).json;
  const newCard = async (fields: object, mode: Mode = 'test') => {
    const created = await createCard(partner, { amount: 1_000, ...fields }, { mode });
    assert.equal(created.status, 201, created.text);
    return created.json;
  };
  const lastEvent = async (cardId: string) => {
    const [row] = await asOwner<{ body: string }>(
      stack,
      'SELECT body FROM event WHERE card_id = $1 ORDER BY id DESC LIMIT 1',
      [cardId],
    );
    return JSON.parse(row?.body ?? '{}');
  };

  for (const mode of ['test', 'live'] as const) {
    it(`changes a ${mode} card's label, address and metadata, and writes one event with the card`, async () => {
      const card = await newCard(PERSON, mode);
      assert.deepEqual(card.metadata, PERSON.metadata);
      const body = {
        card_name: 'Ads 2027',
        email: 'grace@example.com',
        metadata: { order: null, region: 'EU', 'is empty': '' },
      };
      const answer = await update(card.id, body, { mode });
      assert.equal(answer.status, 200, answer.text);
      const metadata = { 'is empty': '', region: 'EU', team: 'marketing' };
      assert.deepEqual(answer.json, {
        ...card,
        card_name: 'Ads 2027',
        email: 'grace@example.com',
        metadata,
      });
      assert.deepEqual(await read(card.id, mode), answer.json);
      assert.deepEqual(await eventTypes(stack, card.id), ['card.issued', 'card.updated']);
      const { type, mode: ofEvent, data } = await lastEvent(card.id);
      assert.deepEqual([type, ofEvent, data], ['card.updated', mode, { card: answer.json }]);
    });

    for (const status of ['funding_pending', 'frozen', 'blocked'] as const satisfies CardStatus[]) {
      it(`changes a ${mode} card that is ${status}`, async () => {
        const cardId = await cardIn(stack, partner, mode, status);
        const { status: answered, json } = await update(cardId, { card_name: 'New' }, { mode });
        assert.deepEqual([answered, json.card_name, json.status], [200, 'New', status]);
        assert.equal((await eventTypes(stack, cardId)).at(-1), 'card.updated');
      });
    }
  }

  it(`removes with null what a card has, and keeps what is not sent`, async () => {
    const card = await newCard(PERSON);
    const steps: [object, object][] = [
      [{ email: null }, { email: null }],
      [{ metadata: { team: null } }, { metadata: { order: '4711' } }],
      [{ card_name: null }, { card_name: null }],
      [{ metadata: null }, { metadata: {} }],
    ];
    let expected = card;
    for (const [body, changed] of steps) {
      expected = { ...expected, ...changed };
      assert.deepEqual((await update(card.id, body)).json, expected);
    }
    assert.equal((await eventTypes(stack, card.id)).length, 1 + steps.length);
  });

  it(`answers 200 and writes no event if nothing of a card changes`, async () => {
    const limit = { amount: 5, interval: 'daily' };
    const card = await newCard({
      ...PERSON,
      spending_controls: { blocked_categories: ['7995'], spending_limits: [limit] },
    });
    for (const body of [
      { spending_controls: { spending_limits: [limit], blocked_categories: ['7995'] } },
      { card_name: 'Ads' },
      { email: 'ada@example.com' },
      { metadata: {} },
      { metadata: { order: '4711', team: 'marketing' } },
      { metadata: { absent: null } },
      PERSON,
    ]) {
      const answer = await update(card.id, body, { idempotencyKey: JSON.stringify(body) });
      assert.deepEqual([answer.status, answer.json], [200, card], answer.text);
    }
    assert.deepEqual(await eventTypes(stack, card.id), ['card.issued']);
  });

  it(`answers 409 for a card that failed, also if the request is repeated`, async () => {
    const cardId = await cardIn(stack, partner, 'test', 'failed');
    const card = await read(cardId);
    const options = { idempotencyKey: 'failed' };
    const refused = await update(cardId, { card_name: 'New' }, options);
    expectError(refused, 'invalid_state');
    expectReplay(await update(cardId, { card_name: 'New' }, options), refused);
    expectError(await update(cardId, { card_name: 'New' }), 'invalid_state');
    assert.deepEqual(await read(cardId), card);
  });

  it(`merges twenty changes of a card that arrive together with a freeze, and loses none`, async () => {
    const { id } = await newCard({});
    const names = Array.from({ length: 20 }, (_, number) => `key-${number}`);
    const [frozen, ...answers] = await Promise.all([
      changeStatus(partner, id, 'freeze'),
      ...names.map((name) => update(id, { metadata: { [name]: name } })),
    ]);
    assert.deepEqual(
      [frozen?.status, ...answers.map(({ status }) => status)],
      [200, ...names.map(() => 200)],
    );
    const card = await read(id);
    assert.deepEqual(card.metadata, Object.fromEntries(names.map((name) => [name, name])));
    assert.equal(card.status, 'frozen');
    const types = await eventTypes(stack, id);
    assert.deepEqual(types.toSorted(), ['card.frozen', 'card.issued', ...names.map(() => 'card.updated')]);
  });

  const many = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`key-${n}`, 'x']));

  it('answers 400 for no field, a key that JavaScript loses and two wrong fields, and changes nothing', async () => {
    for (const [body, paths] of [
      [{}, ['body']],
      ['{"metadata":{"__proto__":"x"}}', ['metadata']],
      [{ card_name: '', metadata: { order: 1 } }, ['card_name', 'metadata.order']],
    ] as const)
      expectError(await update(unchanged.id, body, { idempotencyKey: 'k' }), 'validation_failed', paths);
    assert.deepEqual(await read(unchanged.id), unchanged);
  });

  it('counts the keys of metadata after merging', async () => {
    const { id } = await newCard({ metadata: many(50) });
    expectError(await update(id, { metadata: { one: 'more' } }), 'validation_failed', ['metadata']);
    const swapped = await update(id, { metadata: { one: 'more', 'key-0': null } });
    assert.deepEqual([swapped.status, Object.keys(swapped.json.metadata).length], [200, 50]);
  });

  it('keeps the longest metadata, in any script', async () => {
    const keys = Array.from({ length: 50 }, (_, n) => `${10 + n}${'\u{10ffff}'.repeat(38)}`);
    const { id } = await newCard({});
    for (const at of [0, 10, 20, 30, 40]) {
      const metadata = Object.fromEntries(
        keys.slice(at, at + 10).map((name) => [name, '\u{1f600}'.repeat(500)]),
      );
      const answer = await update(id, { metadata });
      assert.equal(answer.status, 200, answer.text);
    }
    const card = await read(id);
    assert.deepEqual(Object.keys(card.metadata).toSorted(), keys.toSorted());
    assert.equal([...card.metadata[keys[49] ?? '']].length, 500);
  });

  it('accepts keys that every JavaScript object has, such as constructor', async () => {
    const metadata = { constructor: 'a', toString: 'b', hasOwnProperty: 'c', '1': 'd', 'a.b': 'e' };
    const { id } = await newCard({ metadata });
    assert.deepEqual((await read(id)).metadata, metadata);
    const { json } = await update(id, { metadata: { constructor: null, '1': null } });
    assert.deepEqual(json.metadata, { toString: 'b', hasOwnProperty: 'c', 'a.b': 'e' });
  });
});

import assert from 'node:assert/strict';
import { newId } from '../../platform/crypto/new-id.ts';
import { reveal, revealingPartner } from '../support/api/reveals.ts';
import { createCard } from '../support/cards.ts';
import { assertLedgerClean } from '../support/money.ts';
import { NEVER_FINISHES } from '../support/operation-kinds.ts';
import { environmentOf, type Operate, operateIn } from '../support/operator/operate.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';
import { answer, startReceiver } from '../support/webhooks/receiver.ts';

const FIRST = 'Ada "the Countess" \\';
const LAST = 'Lovelace-Übermut';
const EMAIL = 'ada.lovelace@example.com';
/** Its keys are called as fields are, and its values look like them. */
const METADATA = {
  email: EMAIL,
  metadata: `{"${LAST}":"x"}`,
  [`"${LAST}"`]: '","metadata":{"',
  empty: '',
};
const PERSON = { cardholder_first_name: FIRST, cardholder_last_name: LAST, email: EMAIL, metadata: METADATA };
const ERASED = { cardholder_first_name: null, cardholder_last_name: null, email: null, metadata: {} };

describe('operator partner erase-cardholder', () => {
  let stack: TestStack;
  let operate: Operate;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack();
    operate = operateIn(environmentOf(stack.config));
  });
  beforeEach(async () => {
    partner = await revealingPartner(stack);
  });
  afterEach(() => assertLedgerClean(stack, partner));

  const erase = (cardId: string) =>
    operate('partner', 'erase-cardholder', cardId, '--reason', 'request 4711');
  const withoutPerson = (card: object) => ({ ...card, ...ERASED });

  for (const mode of ['test', 'live'] as const) {
    it(`blanks a ${mode} card, its events and its stored responses, and keeps money and ids`, async () => {
      const idempotencyKey = `order-${mode}`;
      const body = { amount: 1_000, external_ref: `ref-${mode}`, ...PERSON };
      const first = await partner.call('POST', '/cards', { mode, idempotencyKey, body });
      assert.equal(first.status, 201, first.text);
      const { id } = first.json;
      assert.equal(first.json.email, EMAIL);
      await until('it has its event', async () =>
        (await partner.call('GET', '/events', { mode })).text.includes(EMAIL),
      );
      const other = await createCard(partner, { amount: 1_000, external_ref: 'other', ...PERSON }, { mode });
      const [balance, card] = await Promise.all(
        ['/balance', `/cards/${id}`].map((path) => partner.call('GET', path, { mode })),
      );

      const { code, json, err, out } = await erase(id);
      assert.equal(code, 0, err);
      assert.deepEqual(
        { ...json, events_blanked: json.events_blanked > 0 },
        {
          ...{ id, object: 'cardholder_erasure', partner_id: partner.id, mode },
          ...{ responses_blanked: 1, events_blanked: true, events_sent_before: 0 },
        },
      );
      assert.ok(!out.includes('Lovelace'));

      assert.deepEqual((await partner.call('GET', `/cards/${id}`, { mode })).json, withoutPerson(card?.json));
      assert.deepEqual((await partner.call('GET', '/balance', { mode })).json, balance?.json);
      const replayed = await partner.call('POST', '/cards', { mode, idempotencyKey, body });
      assert.equal(replayed.headers.get('idempotent-replayed'), 'true');
      assert.deepEqual(replayed.json, withoutPerson(first.json));
      assert.deepEqual(Object.keys(replayed.json), Object.keys(first.json));
      assert.equal((await reveal(partner, id, mode)).json.cardholder_name, null);

      const rows = await asOwner<{ body: string; card_id: string }>(
        stack,
        'SELECT body, card_id FROM event WHERE partner_id = $1 AND mode = $2',
        [partner.id, mode],
      );
      for (const { body: text, card_id } of rows) {
        const event = JSON.parse(text);
        if (card_id === id) assert.ok(!text.includes('Lovelace') && !text.includes(EMAIL), text);
        else if (event.data.card !== undefined) assert.equal(event.data.card.email, EMAIL);
      }
      assert.equal((await partner.call('GET', `/cards/${other.json.id}`, { mode })).json.email, EMAIL);

      const again = await erase(id);
      assert.deepEqual([again.code, again.json.events_blanked, again.json.responses_blanked], [0, 0, 0]);
      const audit = await operate('audit', 'list', '--subject', id);
      const entries = audit.json.filter(
        ({ action }: { action: string }) => action === 'partner.erase-cardholder',
      );
      assert.deepEqual(
        entries.map(({ detail }: { detail: object }) => detail),
        [{ partnerId: partner.id, mode, reason: 'request 4711' }],
      );
      assert.ok(!audit.out.includes('Lovelace') && !audit.out.includes(EMAIL));
    });
  }

  for (const mode of ['test', 'live'] as const) {
    it(`blanks the changes of a ${mode} card, after which its address and metadata can't be set again`, async () => {
      const { json: card } = await createCard(partner, { amount: 1_000, external_ref: 'r' }, { mode });
      const change = (body: object, key?: string) =>
        partner.call('PATCH', `/cards/${card.id}`, { mode, body, ...(key && { idempotencyKey: key }) });
      const body = { card_name: 'Ads', email: EMAIL, metadata: METADATA };
      const changed = await change(body, 'k');
      assert.deepEqual(changed.json, { ...card, ...body }, changed.text);
      const { code, json, err } = await erase(card.id);
      assert.deepEqual([code, json?.responses_blanked, json?.events_blanked], [0, 1, 1], err);

      const replayed = await change(body, 'k');
      assert.equal(replayed.headers.get('idempotent-replayed'), 'true');
      assert.deepEqual(replayed.json, { ...card, card_name: 'Ads' });
      for (const again of [{ email: EMAIL }, { metadata: { order: '1' } }, body]) {
        const refused = await change(again);
        assert.deepEqual([refused.status, refused.json.error.code], [409, 'invalid_state']);
        assert.match(refused.json.error.message, /erased/);
      }
      const removed = { card_name: 'Ads 2', email: null, metadata: { order: null } };
      assert.deepEqual((await change(removed)).json, { ...card, card_name: 'Ads 2' });
      assert.equal((await change({ metadata: null })).status, 200);
      const shown = await operate('card', 'show', card.id);
      assert.match(shown.json.cardholder_erased_at, /^20/);
      const events = await asOwner<{ body: string }>(stack, 'SELECT body FROM event WHERE card_id = $1', [
        card.id,
      ]);
      for (const { body: text } of events)
        assert.ok(!text.includes('Lovelace') && !text.includes(EMAIL), text);
    });
  }

  it("can't be undone for a card that had no data, either", async () => {
    const { json: card } = await createCard(partner, { amount: 1_000 });
    assert.equal((await erase(card.id)).code, 0);
    const refused = await partner.call('PATCH', `/cards/${card.id}`, { body: { email: EMAIL } });
    assert.equal(refused.status, 409, refused.text);
  });

  it('takes the longest metadata out of events and responses', async () => {
    const { json: card } = await createCard(partner, { amount: 1_000, ...PERSON });
    for (const at of [0, 10, 20, 30, 40]) {
      const metadata = Object.fromEntries(
        Array.from({ length: 10 }, (_, n) => [`${at + n}"`.padEnd(40, '"'), '"\\'.repeat(250)]),
      );
      const changed = await partner.call('PATCH', `/cards/${card.id}`, {
        body: { metadata: at === 0 ? { ...metadata, ...none(METADATA) } : metadata },
        idempotencyKey: `long-${at}`,
      });
      assert.equal(changed.status, 200, changed.text);
    }
    const { code, json, err } = await erase(card.id);
    assert.deepEqual([code, json?.responses_blanked, json?.events_blanked], [0, 6, 6], err);
    const events = await asOwner<{ body: string }>(stack, 'SELECT body FROM event WHERE card_id = $1', [
      card.id,
    ]);
    for (const { body } of events) assert.deepEqual(JSON.parse(body).data.card.metadata, {});
  });

  it('sends what is still to be delivered without the names, and says what was sent before', async () => {
    const receiver = await startReceiver();
    try {
      receiver.behave((_request, response) => response.writeHead(500).end(`I don't know ${LAST}`));
      await operate('webhook-endpoint', 'set', partner.id, '--url', receiver.url, '--mode', 'test');
      const { json: card } = await createCard(partner, { amount: 1_000, ...PERSON });
      await until('the first attempt failed', async () => receiver.received.length === 1);
      assert.ok(receiver.received[0]?.body.includes(EMAIL));
      const [event] = (await partner.call('GET', '/events')).json.data;
      await until('it is recorded', async () => {
        const shown = await operate('webhook', 'show', event.id);
        return shown.json.attempts.length === 1;
      });
      const { json } = await erase(card.id);
      assert.deepEqual([json.events_blanked, json.events_sent_before], [1, 1]);
      assert.ok(!(await operate('webhook', 'show', event.id)).out.includes('Lovelace'));

      receiver.behave(answer(200));
      await operate('webhook', 'requeue', event.id);
      await until('it is sent again', async () => receiver.received.length === 2);
      const [sent] = receiver.received.slice(1);
      assert.deepEqual(JSON.parse(sent?.body ?? '').data.card, withoutPerson(card));
    } finally {
      await receiver.stop();
    }
  });

  it('is refused while the network may still be asked with the name, and for an unknown card', async () => {
    const amount = NEVER_FINISHES;
    const { json: card } = await createCard(partner, { amount, ...PERSON }, { mode: 'live' });
    const { code, err } = await erase(card.id);
    assert.deepEqual([code, /once the card is active or has failed/.test(err)], [1, true]);
    assert.equal((await partner.call('GET', `/cards/${card.id}`, { mode: 'live' })).json.email, EMAIL);
    for (const unknown of [newId('card'), 'card_1']) assert.equal((await erase(unknown)).code, 1);
  });
});

/** Removes each of these keys. */
const none = (metadata: object) => Object.fromEntries(Object.keys(metadata).map((key) => [key, null]));

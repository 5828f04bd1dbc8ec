import assert from 'node:assert/strict';
import type { EventType } from '../../domain/event.ts';
import { DeliveryStatus } from '../../domain/event.ts';
import { expectError } from '../support/api/answers.ts';
import { createCard } from '../support/cards.ts';
import { fundedPartner } from '../support/money.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';
import { type SeededEvent, seedEvents, setUrl } from '../support/webhooks/events.ts';

const DAY_MS = 24 * 3_600_000;
const TYPES: EventType[] = ['card.issued', 'card.frozen', 'topup.failed'];

describe('GET /events', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let seeded: Required<SeededEvent>[];
  /** Newest first. */
  let ids: string[];

  before(async () => {
    stack = await sharedStack();
    partner = await stack.createPartner();
    // Disabled, so that what is parked stays so, and what is to be retried is not given up for lack of an endpoint.
    await setUrl(stack, partner, 'https://example.com/');
    await asOwner(
      stack,
      "UPDATE webhook_endpoint SET status = 'disabled', disabled_reason = 'seeded' WHERE partner_id = $1",
      [partner.id],
    );
    seeded = Array.from({ length: 30 }, (_, i) => ({
      type: TYPES[i % 3] as EventType,
      mode: 'test',
      ageMs: (i + 1) * 3_600_000,
      // Not pending: the relay would take it.
      status: DeliveryStatus.options[1 + (i % 5)] as DeliveryStatus,
    }));
    ids = await seedEvents(stack, partner, seeded);
    await seedEvents(stack, partner, [{ mode: 'live' }]);
    await seedEvents(stack, await stack.createPartner(), [{}, {}]);
  });

  const list = async (query = '', of = partner) => {
    const answer = await of.call('GET', `/events${query}`);
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  };
  const listedIds = async (query: string) =>
    (await list(`?limit=100&${query}`)).data.map((event: { id: string }) => event.id);
  const idsWhere = (wanted: (event: Required<SeededEvent>) => boolean) =>
    ids.filter((_, i) => wanted(seeded[i] as Required<SeededEvent>));

  it('filters by type', async () => {
    for (const type of TYPES)
      assert.deepEqual(
        await listedIds(`type=${type}`),
        idsWhere((event) => event.type === type),
      );
    assert.deepEqual(await listedIds('type=deposit.confirmed'), []);
    for (const [type, message] of [
      ['card_issued', 'type must be an event type: did you mean card.issued?'],
      ['topup.suceeded', 'type must be an event type: did you mean topup.succeeded?'],
      ['lost', /^type must be one of card\.issued, /],
    ] as const) {
      const { json } = await partner.call('GET', `/events?type=${type}`);
      if (typeof message === 'string') assert.equal(json.error.message, message);
      else assert.match(json.error.message, message);
    }
  });

  for (const status of DeliveryStatus.options) {
    it(`filters by delivery_status ${status} on every page`, async () => {
      const wanted = idsWhere((event) => event.status === status);
      const query = `delivery_status=${status}`;
      assert.deepEqual(await listedIds(query), wanted);
      if (wanted.length === 0) return;
      assert.deepEqual(await listedIds(`${query}&starting_after=${wanted[1]}`), wanted.slice(2));
      const { data } = await list(`?${query}`);
      assert.ok(data.every((event: { delivery: { status: string } }) => event.delivery.status === status));
    });
  }

  it('lists each event once on the pages of a filter, however many endpoints it was ever sent to', async () => {
    const other = await stack.createPartner();
    const events = await seedEvents(
      stack,
      other,
      Array.from({ length: 30 }, (_, i) => ({ ageMs: (i + 1) * 60_000 })),
    );
    await asOwner(
      stack,
      `INSERT INTO delivery (event_id, endpoint_id, partner_id, mode, type, status)
       SELECT event_id, 'we_' || n, partner_id, mode, type, status FROM delivery, generate_series(1, 7) n
       WHERE partner_id = $1`,
      [other.id],
    );
    for (const filter of ['type=card.issued', 'delivery_status=delivered']) {
      for (const limit of [1, 4, 29, 30, 100]) {
        const seen: string[] = [];
        for (let cursor = ''; ; ) {
          const { data, has_more, next_cursor } = await list(`?limit=${limit}&${filter}${cursor}`, other);
          seen.push(...data.map((event: { id: string }) => event.id));
          if (!has_more) break;
          assert.equal(data.length, limit);
          cursor = `&starting_after=${next_cursor}`;
        }
        assert.deepEqual(seen, events, `${filter}, in pages of ${limit}`);
      }
    }
  });

  it('filters by card_id, together with the other filters', async () => {
    const funded = await fundedPartner(stack);
    const issue = async () => (await createCard(funded, { amount: 1_000 })).json.id;
    const [cardId, other] = [await issue(), await issue()];
    await funded.call('POST', `/cards/${cardId}/freeze`);
    const listed = async (query: string, of = funded) =>
      (await list(`?${query}`, of)).data.map((event: { type: string }) => event.type);
    assert.deepEqual(await listed(`card_id=${cardId}`), ['card.frozen', 'card.issued']);
    assert.deepEqual(await listed(`card_id=${other}`), ['card.issued']);
    assert.deepEqual(await listed(`card_id=${cardId}&type=card.issued`), ['card.issued']);
    assert.deepEqual(await listed(`card_id=${cardId}&delivery_status=no_endpoint&limit=1`), ['card.frozen']);
    assert.deepEqual(await listed(`card_id=${cardId}&delivery_status=given_up`), []);
    assert.deepEqual(await listed(`card_id=${cardId}`, partner), []);
  });

  it('combines all of its filters', async () => {
    const wanted = idsWhere((event) => event.type === 'card.issued' && event.status === 'given_up');
    assert.ok(wanted.length > 1);
    const { created } = (await partner.call('GET', `/events/${wanted[1]}`)).json;
    const query = `type=card.issued&delivery_status=given_up&created_lte=${created}&created_gte=${created}`;
    assert.deepEqual(await listedIds(query), [wanted[1]]);
    assert.deepEqual(await listedIds(`${query}&starting_after=${wanted[0]}`), [wanted[1]]);
    assert.deepEqual(await listedIds(`${query}&starting_after=${wanted[1]}`), []);
  });

  it('lists events that happened without an endpoint, as they would have been sent', async () => {
    const other = await fundedPartner(stack, 10_000);
    const card = await createCard(other, { amount: 100 });
    const { data } = await list('', other);
    assert.equal(data.length, 1);
    const { object, delivery, deliveries, ...envelope } = data[0];
    assert.deepEqual([object, envelope.type, envelope.data.card], ['event', 'card.issued', card.json]);
    assert.deepEqual(delivery, { status: 'no_endpoint', next_attempt_at: null, attempts: [] });
    const [row] = await asOwner<{ body: string }>(stack, 'SELECT body FROM event WHERE id = $1', [
      envelope.id,
    ]);
    assert.deepEqual(envelope, JSON.parse(row?.body ?? ''));
  });

  it("shows the attempts in order and when the next one is due, and not the receiver's answers", async () => {
    const other = await stack.createPartner();
    const [id = '', without] = await seedEvents(stack, other, [{ status: 'retrying' }, { ageMs: 1_000 }]);
    await asOwner(
      stack,
      `INSERT INTO delivery_attempt
         (event_id, number, started_at, duration_ms, delivered, http_status, error, answer_start)
       SELECT $1, n, '2026-11-20T08:00:00.120Z'::timestamptz + n * interval '1 minute', n, n = 12,
         CASE n WHEN 3 THEN NULL WHEN 12 THEN 204 ELSE 500 END, CASE n WHEN 12 THEN NULL ELSE 'code_' || n END, 'SECRET'
       FROM generate_series(12, 1, -1) n`,
      [id],
    );
    await asOwner(stack, 'UPDATE delivery SET next_attempt_at = $2 WHERE event_id = $1', [
      id,
      '2999-11-21T10:00:00.5Z',
    ]);
    const { text, json } = await other.call('GET', `/events/${id}`);
    assert.ok(!text.includes('SECRET'));
    const { status, next_attempt_at, attempts } = json.delivery;
    assert.deepEqual([status, next_attempt_at], ['retrying', '2999-11-21T10:00:00.500Z']);
    assert.deepEqual(
      attempts.map((attempt: { number: number }) => attempt.number),
      [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
    );
    assert.deepEqual(attempts[2], {
      number: 3,
      status: 'failed',
      http_status: null,
      started_at: '2026-11-20T08:03:00.120Z',
      duration_ms: 3,
      error: 'code_3',
    });
    assert.deepEqual(
      [attempts[11].status, attempts[11].http_status, attempts[11].error],
      ['succeeded', 204, null],
    );
    const { data } = await list('', other);
    assert.deepEqual(data[0], json);
    assert.deepEqual([data[1].id, data[1].delivery.attempts], [without, []]);
  });

  it('leaves out events that are older than 30 days', async () => {
    const other = await stack.createPartner();
    const [young, old] = await seedEvents(stack, other, [
      { ageMs: 30 * DAY_MS - 60_000, status: 'given_up' },
      { ageMs: 30 * DAY_MS + 1, status: 'given_up' },
    ]);
    for (const query of ['', '?delivery_status=given_up', '?created_gte=2000-01-01T00:00:00Z']) {
      const { data } = await list(query, other);
      assert.deepEqual(
        data.map((event: { id: string }) => event.id),
        [young],
      );
    }
    assert.equal((await other.call('GET', `/events/${young}`)).status, 200);
    expectError(await other.call('GET', `/events/${old}`), 'event_not_found');
  });
});

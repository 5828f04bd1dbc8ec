import assert from 'node:assert/strict';
import { expectError } from '../support/api/answers.ts';
import { createCard } from '../support/cards.ts';
import { column } from '../support/column.ts';
import { fundedPartner } from '../support/money.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';
import { seedEvents } from '../support/webhooks/events.ts';

const DAY_MS = 24 * 3_600_000;

describe('GET /events', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    partner = await stack.createPartner();
  });

  const list = async (query = '') => {
    const answer = await partner.call('GET', `/events${query}`);
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  };
  it('lists each event once on the pages of a filter, however many endpoints it was ever sent to', async () => {
    const seeded = Array.from({ length: 30 }, (_, i) => ({ ageMs: (i + 1) * 60_000 }));
    const events = await seedEvents(stack, partner, seeded);
    await asOwner(
      stack,
      `INSERT INTO delivery (event_id, endpoint_id, partner_id, mode, type, status)
       SELECT event_id, 'we_' || n, partner_id, mode, type, status FROM delivery, generate_series(1, 7) n
       WHERE partner_id = $1`,
      [partner.id],
    );
    for (const filter of ['type=card.issued', 'delivery_status=delivered']) {
      for (const limit of [4, 29, 30]) {
        const seen: string[] = [];
        for (let cursor = ''; ; ) {
          const { data, has_more, next_cursor } = await list(`?limit=${limit}&${filter}${cursor}`);
          seen.push(...data.map((event: { id: string }) => event.id));
          if (!has_more) break;
          assert.equal(data.length, limit);
          cursor = `&starting_after=${next_cursor}`;
        }
        assert.deepEqual(seen, events, `${filter}, in pages of ${limit}`);
      }
    }
  });

  it('lists events that happened without an endpoint, as they would have been sent', async () => {
    partner = await fundedPartner(stack, 10_000);
    const card = await createCard(partner, { amount: 100 });
    const { data } = await list();
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
    const [id = '', without] = await seedEvents(stack, partner, [{ status: 'retrying' }, { ageMs: 1_000 }]);
    await asOwner(
      stack,
      `INSERT INTO delivery_attempt
         (event_id, endpoint_id, number, started_at, duration_ms, delivered, http_status, error, answer_start)
       SELECT $1, '', n, '2026-11-20T08:00:00.120Z'::timestamptz + n * interval '1 minute', n, n = 12,
         CASE n WHEN 3 THEN NULL WHEN 12 THEN 204 ELSE 500 END, CASE n WHEN 12 THEN NULL ELSE 'code_' || n END, 'SECRET'
       FROM generate_series(12, 1, -1) n`,
      [id],
    );
    await asOwner(stack, 'UPDATE delivery SET next_attempt_at = $2 WHERE event_id = $1', [
      id,
      '2999-11-21T10:00:00.5Z',
    ]);
    const { text, json } = await partner.call('GET', `/events/${id}`);
    assert.ok(!text.includes('SECRET'));
    const { status, next_attempt_at, attempts } = json.delivery;
    assert.deepEqual([status, next_attempt_at], ['retrying', '2999-11-21T10:00:00.500Z']);
    const numbers = attempts.map((attempt: { number: number }) => attempt.number);
    assert.deepEqual(numbers, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    assert.deepEqual(attempts[2], {
      ...{ number: 3, status: 'failed', http_status: null, error: 'code_3' },
      ...{ started_at: '2026-11-20T08:03:00.120Z', duration_ms: 3 },
    });
    const { status: last, http_status, error } = attempts[11];
    assert.deepEqual([last, http_status, error], ['succeeded', 204, null]);
    const { data } = await list();
    assert.deepEqual(data[0], json);
    assert.deepEqual([data[1].id, data[1].delivery.attempts], [without, []]);
  });

  it('shows the newest 25 attempts of a delivery and the first 20 deliveries of an event', async () => {
    const [id = ''] = await seedEvents(stack, partner, [{}]);
    await asOwner(
      stack,
      `INSERT INTO delivery (event_id, endpoint_id, partner_id, mode, type, status)
       SELECT event_id, 'we_' || n, partner_id, mode, type, status FROM delivery, generate_series(10, 40) n
       WHERE event_id = $1`,
      [id],
    );
    await asOwner(
      stack,
      `INSERT INTO delivery_attempt (event_id, endpoint_id, number, started_at, duration_ms, delivered)
       SELECT event_id, endpoint_id, n, now(), 1, true FROM delivery, generate_series(1, 27) n WHERE event_id = $1`,
      [id],
    );
    const numbers = Array.from({ length: 25 }, (_, i) => i + 3);
    const { json, text } = await partner.call('GET', `/events/${id}`);
    assert.equal(json.deliveries.at(-1).endpoint_id, 'we_28', 'the one without an endpoint is not listed');
    for (const { attempts } of [json.delivery, ...json.deliveries])
      assert.deepEqual(
        attempts.map(({ number }: { number: number }) => number),
        numbers,
      );
    assert.deepEqual((await list()).data, [json]);
    // A list reads 25 at a time, which should not be much longer than its page of 1 MB.
    assert.ok(25 * text.length < 2 * 1_048_576);
  });

  it('leaves out events that are older than 30 days', async () => {
    const [young, old] = await seedEvents(stack, partner, [
      { ageMs: 30 * DAY_MS - 60_000, status: 'given_up' },
      { ageMs: 30 * DAY_MS + 1, status: 'given_up' },
    ]);
    for (const query of ['', '?delivery_status=given_up', '?created_gte=2000-01-01T00:00:00Z']) {
      const { data } = await list(query);
      assert.deepEqual(column(data, 'id'), [young]);
    }
    assert.equal((await partner.call('GET', `/events/${young}`)).status, 200);
    expectError(await partner.call('GET', `/events/${old}`), 'event_not_found');
  });
});

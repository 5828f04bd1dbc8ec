import assert from 'node:assert/strict';
import { DeliveryStatus } from '../../../domain/event.ts';
import type { EventType } from '../../../resources/event-types.ts';
import { expectError } from '../../support/api/answers.ts';
import { createCard } from '../../support/cards.ts';
import { fundedPartner } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';
import { type SeededEvent, seedEvents, setUrl } from '../../support/webhooks/events.ts';

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

  it('lists the newest 20 by default in the list envelope, each as its own endpoint returns it', async () => {
    const { data, ...page } = await list();
    assert.deepEqual(page, { object: 'list', has_more: true, next_cursor: ids[19] });
    assert.deepEqual(
      data.map((event: { id: string }) => event.id),
      ids.slice(0, 20),
    );
    assert.deepEqual((await partner.call('GET', `/events/${ids[3]}`)).json, data[3]);
  });

  for (const limit of [1, 7, 29, 30, 31, 100]) {
    it(`lists all events in pages of ${limit}`, async () => {
      const seen: string[] = [];
      for (let cursor = ''; ; ) {
        const page = await list(`?limit=${limit}${cursor}`);
        seen.push(...page.data.map((event: { id: string }) => event.id));
        assert.equal(page.has_more, seen.length < ids.length);
        assert.equal(page.next_cursor, page.has_more ? seen.at(-1) : null);
        if (!page.has_more) break;
        assert.equal(page.data.length, limit);
        cursor = `&starting_after=${page.next_cursor}`;
      }
      assert.deepEqual(seen, ids);
    });
  }

  it('has pages that stay the same while new events arrive', async () => {
    const other = await stack.createPartner();
    const expected = await seedEvents(stack, other, [{ ageMs: 1_000 }, { ageMs: 2_000 }, { ageMs: 3_000 }]);
    const seen: string[] = [];
    for (let cursor = ''; ; ) {
      const page = await list(`?limit=1${cursor}`, other);
      seen.push(page.data[0].id);
      await seedEvents(stack, other, [{}]);
      if (!page.has_more) break;
      cursor = `&starting_after=${page.next_cursor}`;
    }
    assert.deepEqual(seen, expected);
  });

  it('filters by type', async () => {
    for (const type of TYPES)
      assert.deepEqual(
        await listedIds(`type=${type}`),
        idsWhere((event) => event.type === type),
      );
    assert.deepEqual(await listedIds('type=deposit.confirmed'), []);
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

  it('filters by creation time to the millisecond, including both ends', async () => {
    const { data } = await list('?limit=100');
    const [newer, older] = [Date.parse(data[4].created), Date.parse(data[9].created)];
    const range = (from: number, until: number) =>
      listedIds(`created_gte=${new Date(from).toISOString()}&created_lte=${new Date(until).toISOString()}`);
    assert.deepEqual(await range(older, newer), ids.slice(4, 10));
    assert.deepEqual(await range(older + 1, newer - 1), ids.slice(5, 9));
    assert.deepEqual(await range(newer, older), []);
    assert.deepEqual(await listedIds(`created_gte=${data[4].created}`), ids.slice(0, 5));
    assert.deepEqual(await listedIds(`created_lte=${data[4].created}`), ids.slice(4));
    const zoned = new Date(older + 2 * 3_600_000).toISOString().replace('Z', '%2B02:00');
    assert.deepEqual(await listedIds(`created_gte=${zoned}`), ids.slice(0, 10));
  });

  it('accepts any year', async () => {
    for (const year of ['0000', '0001', '1969', '9999']) {
      for (const zone of ['Z', '-23:59', '%2B23:59']) {
        const at = `${year}-12-31T23:59:59.999${zone}`;
        assert.deepEqual(await listedIds(`created_gte=${at}`), year === '9999' ? [] : ids);
        assert.deepEqual(await listedIds(`created_lte=${at}`), year === '9999' ? ids : []);
      }
    }
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

  it('shows nothing to another account or in the other mode', async () => {
    const other = await stack.createPartner();
    const empty = { object: 'list', data: [], has_more: false, next_cursor: null };
    assert.deepEqual(await list('', other), empty);
    const live = (await partner.call('GET', '/events', { mode: 'live' })).json;
    assert.deepEqual(
      live.data.map((event: { mode: string }) => event.mode),
      ['live'],
    );
    for (const answer of [
      await other.call('GET', `/events/${ids[0]}`),
      await partner.call('GET', `/events/${ids[0]}`, { mode: 'live' }),
    ]) {
      expectError(answer, 'event_not_found');
    }
  });

  it('answers 400 for a starting_after that is not an event of this account and mode', async () => {
    const cursor = ['starting_after'];
    const other = await stack.createPartner();
    const own = `/events?starting_after=${ids[0]}`;
    expectError(await other.call('GET', own), 'validation_failed', cursor);
    expectError(await partner.call('GET', own, { mode: 'live' }), 'validation_failed', cursor);
    for (const id of [`evt_${'0'.repeat(26)}`, 'evt_1', '', '%00', `card_${'0'.repeat(26)}`, "'"]) {
      for (const more of ['', '&delivery_status=given_up', '&type=ping&delivery_status=delivered']) {
        const answer = await partner.call('GET', `/events?starting_after=${id}${more}`);
        expectError(answer, 'validation_failed', cursor);
      }
    }
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
      '2026-11-21T10:00:00.5Z',
    ]);
    const { text, json } = await other.call('GET', `/events/${id}`);
    assert.ok(!text.includes('SECRET'));
    const { status, next_attempt_at, attempts } = json.delivery;
    assert.deepEqual([status, next_attempt_at], ['retrying', '2026-11-21T10:00:00.500Z']);
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

  for (const id of [`evt_${'0'.repeat(26)}`, 'evt_1', `card_${'0'.repeat(26)}`, '%00', "'", '..%2fcards']) {
    it(`answers 404 for the id ${id}`, async () => {
      expectError(await partner.call('GET', `/events/${id}`), 'event_not_found');
    });
  }

  const INVALID: Record<string, string[]> = {
    'limit=0': ['limit'],
    'limit=101': ['limit'],
    'limit=': ['limit'],
    'type=': ['type'],
    'type=card.*': ['type'],
    'type=CARD.ISSUED': ['type'],
    'type=card.issued,ping': ['type'],
    'delivery_status=': ['delivery_status'],
    'delivery_status=failed': ['delivery_status'],
    "delivery_status=given_up'": ['delivery_status'],
    'delivery_status[]=given_up': ['delivery_status[]'],
    'created_gte=': ['created_gte'],
    'created_gte=yesterday': ['created_gte'],
    'created_gte=1763700000': ['created_gte'],
    'created_gte=2026-11-20': ['created_gte'],
    'created_gte=2026-11-20T08:00:00': ['created_gte'],
    'created_lte=2026-02-30T08:00:00Z': ['created_lte'],
    'created_lte=2026-11-20T08:00:00+01:00': ['created_lte'],
    'created_lte=%00': ['created_lte'],
    'created[gte]=2026-11-20T08:00:00Z': ['created[gte]'],
    'type=ping&type=ping': ['type'],
    'created_gte=x&created_lte=y&limit=z': ['created_gte', 'created_lte', 'limit'],
    'status=given_up&created=1': ['status', 'created'],
  };
  for (const [query, paths] of Object.entries(INVALID)) {
    it(`answers 400 for ?${query} and names ${paths.join(', ')}`, async () => {
      expectError(await partner.call('GET', `/events?${query}`), 'validation_failed', paths);
    });
  }
});

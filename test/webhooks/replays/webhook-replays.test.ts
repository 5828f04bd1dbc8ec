import assert from 'node:assert/strict';
import { pino } from 'pino';
import type { EventType } from '../../../domain/event.ts';
import { newId } from '../../../platform/crypto/new-id.ts';
import { query } from '../../../platform/db/sql.ts';
import { continueReplays } from '../../../webhooks/replays/continue.ts';
import { requeueForWorkflow } from '../../../webhooks/send-on-request.ts';
import { expectError } from '../../support/api/answers.ts';
import { asOwner, connectTo, ownerUrlOf } from '../../support/postgres.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';
import { type SeededEvent, seedEvents, sendOverdue, writeEvents } from '../../support/webhooks/events.ts';
import { answer, type Receiver, startReceiver } from '../../support/webhooks/receiver.ts';

const HOUR_MS = 3_600_000;
const LONG_AGO = new Date(Date.now() - 40 * 24 * HOUR_MS).toISOString();

describe('POST /webhook-endpoints/{id}/replay', () => {
  let stack: TestStack;
  let partner: TestPartner;
  const receivers: Receiver[] = [];
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    partner = await stack.createPartner();
  });
  afterEach(async () => {
    for (const receiver of receivers.splice(0)) await receiver.stop();
  });

  /** An endpoint of the account, and what receives its events. */
  async function endpoint(body: object = {}): Promise<{ id: string; receiver: Receiver }> {
    const receiver = await startReceiver();
    receivers.push(receiver);
    const { status, json, text } = await partner.call('POST', '/webhook-endpoints', {
      body: { url: receiver.url, ...body },
    });
    assert.equal(status, 201, text);
    return { id: json.id, receiver };
  }
  const seed = (events: SeededEvent[]) => seedEvents(stack, partner, events);
  /** Events from before the account had an endpoint, the first of which is the oldest. */
  const seedEarlier = (count: number) =>
    seed(Array.from({ length: count }, (_, i) => ({ ageMs: (count - i) * 1_000, status: 'no_endpoint' })));
  const ask = (id: string, body: object) => partner.call('POST', `/webhook-endpoints/${id}/replay`, { body });
  const read = async (endpointId: string, id: string) =>
    (await partner.call('GET', `/webhook-endpoints/${endpointId}/replays/${id}`)).json;
  async function replay(id: string, body: object = {}) {
    const { status, json, text } = await ask(id, { created_gte: LONG_AGO, ...body });
    assert.equal(status, 202, text);
    return json;
  }
  const completed = (endpointId: string, id: string) =>
    until('the replay is completed', async () => {
      const shown = await read(endpointId, id);
      return shown.status === 'completed' && shown;
    });
  /** A replay of these events whose receiver answers nothing until all of it is released, so that four are on their way. */
  async function held(earlier: string[]) {
    const { id, receiver } = await endpoint();
    const released = Promise.withResolvers<void>();
    receiver.behave((_request, response) => void released.promise.then(() => response.writeHead(200).end()));
    const replayId: string = (await replay(id)).id;
    await until('four are on their way', () => receiver.received.length === 4);
    return { earlier, id, receiver, replayId, release: released.resolve };
  }
  const ids = ({ received }: Receiver) => received.map(({ id }) => id);
  const statusAt = async (eventId: string, endpointId: string) =>
    (await partner.call('GET', `/events/${eventId}`)).json.deliveries.find(
      (delivery: { endpoint_id: string }) => delivery.endpoint_id === endpointId,
    )?.status;

  /** A replay of all that the endpoint was not sent, as if it had begun long ago. @returns its id */
  async function insertReplay(endpointId: string): Promise<string> {
    const id = newId('rpl');
    await asOwner(
      stack,
      `INSERT INTO webhook_replay (id, partner_id, mode, endpoint_id, status, wanted, after_event_id, before_event_id, matched,
         created_at)
       VALUES ($1, $2, 'test', $3, 'running', 'undelivered', 'evt_', 'evt_' || id_time(now()), 0, now())`,
      [id, partner.id, endpointId],
    );
    return id;
  }
  /** Holds what a statement locks while `work` runs. */
  async function holding(statement: string, values: unknown[], work: () => Promise<void>): Promise<void> {
    await using owner = await connectTo(ownerUrlOf(stack.config.databaseUrl));
    await owner.query('BEGIN');
    await owner.query(statement, values);
    await work();
  }
  /** A replay of another account. @throws Error if it is not completed */
  async function replayOfAnother(): Promise<void> {
    const own = partner;
    partner = await stack.createPartner();
    await seedEarlier(3);
    const { id, receiver } = await endpoint();
    await completed(id, (await replay(id)).id);
    assert.equal(receiver.received.length, 3);
    partner = own;
  }

  it('sends events from before the endpoint there, with their ids and bodies, oldest first', async () => {
    const earlier = await seedEarlier(100);
    const { id, receiver } = await endpoint();
    const { id: replayId, created, ...started } = await replay(id);
    assert.match(replayId, /^rpl_[0-9a-z]{26}$/);
    assert.ok(Math.abs(Date.parse(created) - Date.now()) < 60_000, created);
    const expected = { object: 'webhook_replay', endpoint_id: id, matched: 100, mode: 'test' };
    assert.deepEqual(started, { ...expected, status: 'running', sent: 0 });
    const { id: _, created: shownCreated, ...ended } = await completed(id, replayId);
    assert.deepEqual(ended, { ...expected, status: 'completed', sent: 100 });
    assert.equal(shownCreated, created);
    // They are sent side by side, so those of one look may overtake each other, and no others.
    assert.deepEqual([...ids(receiver)].sort(), [...earlier].sort());
    for (const [at, eventId] of ids(receiver).entries())
      assert.ok(Math.abs(earlier.indexOf(eventId) - at) < 64, `${eventId} came as number ${at}`);
    const stored = await query<{ id: string; body: string }>(
      stack.orm.em.fork(),
      'SELECT id, body FROM event WHERE partner_id = $1',
      [partner.id],
    );
    const bodies = new Map(stored.map((event) => [event.id, event.body]));
    for (const { id: eventId, body } of receiver.received) assert.equal(body, bodies.get(eventId));
    assert.equal(await statusAt(earlier[0] ?? '', id), 'delivered');
  });

  it('sends by default what was given up or was for nobody, or else all, or only what was given up', async () => {
    const { id, receiver } = await endpoint();
    const [retried = '', delivered, givenUp, unwanted] = await seed([
      { status: 'retrying' },
      { status: 'delivered' },
      { status: 'given_up' },
      { status: 'no_endpoint' },
    ]);
    await asOwner(
      stack,
      `UPDATE delivery SET next_attempt_at = now() + interval '1 hour' WHERE event_id = $1`,
      [retried],
    );
    const { id: replayId, matched } = await replay(id);
    assert.equal(matched, 2);
    await completed(id, replayId);
    assert.deepEqual(ids(receiver).sort(), [givenUp, unwanted].sort());
    const { id: second, matched: again } = await replay(id, { status: 'all' });
    assert.equal(again, 4, 'all that are not in line already');
    const { sent } = await completed(id, second);
    assert.equal(sent, 4);
    assert.deepEqual(ids(receiver).slice(2).sort(), [retried, delivered, givenUp, unwanted].sort());
    const [, alone] = await seed([{ status: 'no_endpoint' }, { status: 'given_up' }]);
    const { id: third, matched: ofGivenUp } = await replay(id, { status: 'given_up' });
    assert.equal(ofGivenUp, 1);
    await completed(id, third);
    assert.deepEqual(ids(receiver).slice(6), [alone]);
  });

  it('sends what was given up at a deleted endpoint to another, and nothing to the others', async () => {
    const dead = await endpoint();
    dead.receiver.behave(answer(500));
    const written = await writeEvents(stack, partner, 3);
    await until('they were tried', () => dead.receiver.received.length >= 3);
    assert.equal((await partner.call('DELETE', `/webhook-endpoints/${dead.id}`)).status, 204);
    const [one, other] = [await endpoint(), await endpoint()];
    await completed(one.id, (await replay(one.id)).id);
    assert.deepEqual(ids(one.receiver).sort(), [...written].sort());
    assert.deepEqual(ids(other.receiver), []);
  });

  it('sends only types that the endpoint wants, and of these only the ones that are asked for', async () => {
    const of = (type: EventType, ageMs: number): SeededEvent => ({ type, ageMs, status: 'no_endpoint' });
    const [issued, frozen] = await seed([
      of('card.issued', 3_000),
      of('card.frozen', 2_000),
      of('deposit.confirmed', 1_000),
    ]);
    const { id, receiver } = await endpoint({ event_types: ['card.issued', 'card.frozen'] });
    const event_types = ['card.frozen', 'deposit.confirmed'];
    await completed(id, (await replay(id, { event_types })).id);
    assert.deepEqual(ids(receiver), [frozen]);
    await completed(id, (await replay(id)).id);
    assert.deepEqual(ids(receiver), [frozen, issued]);
  });

  it('sends only what was created in the range, ends included, and never a ping of another endpoint', async () => {
    await endpoint();
    const [first] = (await partner.call('GET', '/webhook-endpoints')).json.data;
    assert.equal((await partner.call('POST', `/webhook-endpoints/${first.id}/test`)).status, 202);
    const [, from, to] = await seed([40, 30, 20, 10].map((ageMin) => ({ ageMs: ageMin * 60_000 })));
    const { id, receiver } = await endpoint();
    const createdOf = async (eventId = '') => (await partner.call('GET', `/events/${eventId}`)).json.created;
    const range = { created_gte: await createdOf(from), created_lte: await createdOf(to) };
    await completed(id, (await replay(id, range)).id);
    assert.deepEqual(ids(receiver).sort(), [from, to].sort());
    await completed(id, (await replay(id)).id);
    assert.equal(receiver.received.length, 4);
  });

  it('counts as sent what failed, which is retried like any other', async () => {
    const [event = ''] = await seedEarlier(1);
    const { id, receiver } = await endpoint();
    receiver.behave((request, response, number) =>
      answer(number === 0 ? 500 : 200)(request, response, number),
    );
    const { sent } = await completed(id, (await replay(id)).id);
    assert.equal(sent, 1);
    await sendOverdue(stack, [event]);
    await until('its retry arrives', async () => (await statusAt(event, id)) === 'delivered');
    assert.equal(receiver.received.length, 2);
  });

  it('answers 409 while another replay of the endpoint is running, also if several start at once', async () => {
    await seedEarlier(60);
    const [{ id, receiver }, other] = [await endpoint(), await endpoint()];
    receiver.behave(() => {});
    const answers = await Promise.all([1, 2, 3, 4].map(() => ask(id, { created_gte: LONG_AGO })));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [202, 409, 409, 409]);
    const started = answers.find(({ status }) => status === 202)?.json;
    const refused = await ask(id, { created_gte: LONG_AGO });
    expectError(refused, 'invalid_state');
    assert.match(refused.json.error.message, new RegExp(started.id));
    await completed(other.id, (await replay(other.id)).id);
    assert.equal(other.receiver.received.length, 60, 'the other endpoint has one of its own meanwhile');
    assert.equal((await partner.call('DELETE', `/webhook-endpoints/${id}`)).status, 204);
  });

  it('parks the rest if the endpoint is disabled meanwhile, is not repeated then, and sends it once that is enabled', async () => {
    const { earlier, id, receiver, replayId, release } = await held(await seedEarlier(100));
    await partner.call('PATCH', `/webhook-endpoints/${id}`, { body: { status: 'disabled' } });
    release();
    const { matched, sent } = await completed(id, replayId);
    expectError(await ask(id, { created_gte: LONG_AGO }), 'invalid_state');
    assert.equal(matched, 100);
    assert.ok(sent >= 4 && sent < 100, `${sent} were sent`);
    assert.equal(await statusAt(earlier.at(-1) ?? '', id), 'parked');
    await partner.call('PATCH', `/webhook-endpoints/${id}`, { body: { status: 'enabled' } });
    await until('all have arrived', () => new Set(ids(receiver)).size === 100);
  });

  it('is gone with its endpoint, and what it had not sent goes nowhere', async () => {
    const { earlier, id, receiver, replayId, release } = await held(await seedEarlier(50));
    assert.equal((await partner.call('DELETE', `/webhook-endpoints/${id}`)).status, 204);
    release();
    expectError(
      await partner.call('GET', `/webhook-endpoints/${id}/replays/${replayId}`),
      'webhook_replay_not_found',
    );
    await until('what was in line has ended', async () => {
      const [row] = await query<{ waiting: number }>(
        stack.orm.em.fork(),
        `SELECT count(*)::int AS waiting FROM delivery WHERE partner_id = $1 AND status IN ('pending', 'retrying')`,
        [partner.id],
      );
      return row?.waiting === 0;
    });
    assert.ok(receiver.received.length < earlier.length);
    const next = await endpoint();
    await completed(next.id, (await replay(next.id)).id);
    assert.ok(next.receiver.received.length >= earlier.length - receiver.received.length);
  });

  it('takes created_gte in the time of an account whose clock was advanced', async () => {
    const [before = ''] = await seedEarlier(1);
    const { id, receiver } = await endpoint();
    await partner.call('POST', '/test/clock/advance', { body: { seconds: 86_400 } });
    const [after = ''] = await writeEvents(stack, partner, 1);
    await until('it has arrived', async () => (await statusAt(after, id)) === 'delivered');
    const created_gte = new Date(Date.now() + 12 * HOUR_MS).toISOString();
    const { created, matched } = await replay(id, { created_gte, status: 'all' });
    assert.ok(Date.parse(created) > Date.now() + 23 * HOUR_MS, created);
    assert.equal(matched, 1);
    await until('it has arrived again', () => receiver.attempts(after).length === 2);
    assert.equal(receiver.attempts(before).length, 0);
  });

  it('leaves out an event that became older than 30 days since, whose delivery is deleted', async () => {
    const [old, young] = await seed([
      { ageMs: 31 * 24 * HOUR_MS, status: 'delivered' },
      { ageMs: 1_000, status: 'no_endpoint' },
    ]);
    await asOwner(stack, 'DELETE FROM delivery WHERE event_id = $1', [old]);
    const { id, receiver } = await endpoint();
    await completed(id, await insertReplay(id));
    assert.deepEqual(ids(receiver), [young]);
  });

  it('ends without its endpoint, and delays no other', async () => {
    await insertReplay('we_deleted');
    await replayOfAnother();
    await until('it is gone', async () => {
      const rows = await asOwner(stack, 'SELECT FROM webhook_replay WHERE partner_id = $1', [partner.id]);
      return rows.length === 0;
    });
  });

  it('delays no other while a delivery that it needs is locked, and then goes on', async () => {
    const [event] = await seedEarlier(1);
    const { id, receiver } = await endpoint();
    let replayId = '';
    await holding('SELECT FROM delivery WHERE event_id = $1 FOR UPDATE', [event], async () => {
      replayId = (await replay(id)).id;
      await replayOfAnother();
      assert.equal((await read(id, replayId)).status, 'running');
    });
    await completed(id, replayId);
    assert.deepEqual(ids(receiver), [event]);
  });

  it('waits while the account is locked, and delays no other; asking for one gets 503', async () => {
    const [event] = await seedEarlier(1);
    const { id, receiver } = await endpoint();
    let replayId = '';
    await holding('SELECT FROM partner WHERE id = $1 FOR NO KEY UPDATE', [partner.id], async () => {
      const other = await ask(id, { created_gte: LONG_AGO });
      assert.equal(other.status, 503, other.text);
      replayId = await insertReplay(id);
      await replayOfAnother();
      assert.deepEqual(ids(receiver), []);
    });
    await completed(id, replayId);
    assert.deepEqual(ids(receiver), [event]);
  });

  it('has at most four events on their way to an endpoint, so what happens meanwhile goes first', async () => {
    const { id, receiver, replayId, release } = await held(await seedEarlier(60));
    const [live = ''] = await writeEvents(stack, partner, 1);
    await until('what has just happened arrives', () => receiver.attempts(live).length === 1);
    assert.equal(receiver.received.length, 5);
    release();
    await completed(id, replayId);
    assert.equal(receiver.received.length, 61);
  });

  it('goes through no events while a receiver that hangs leaves no room in its line', async () => {
    const { id, replayId, release } = await held(await seedEarlier(100));
    const progress = async () => {
      const [row] = await asOwner<{ after: string; inLine: number }>(
        stack,
        `SELECT after_event_id AS after, cardinality(in_line) AS "inLine" FROM webhook_replay WHERE id = $1`,
        [replayId],
      );
      return row ?? assert.fail('there is no such replay');
    };
    const full = await until('its line is full', async () => {
      const one = await progress();
      return one.inLine === 32 && one;
    });
    for (let look = 0; look < 3; look++) {
      await asOwner(stack, 'UPDATE webhook_replay SET due_at = now() WHERE id = $1', [replayId]);
      await continueReplays(stack.orm, pino({ level: 'silent' }));
    }
    assert.deepEqual(await progress(), full);
    release();
    assert.equal((await partner.call('DELETE', `/webhook-endpoints/${id}`)).status, 204);
  });

  it('is overtaken by an event in its line that is resent, and counts it once', async () => {
    const { earlier, id, receiver, replayId, release } = await held(await seedEarlier(20));
    const last = earlier.at(-1) ?? '';
    assert.equal((await partner.call('POST', `/events/${last}/resend`)).status, 202);
    await until('it arrives', () => receiver.attempts(last).length === 1);
    assert.equal(receiver.received.length, 5);
    release();
    assert.equal((await completed(id, replayId)).sent, 20);
    assert.equal(receiver.received.length, 20);
  });

  it('never sends an endpoint news of its own health, and sends it to another', async () => {
    const one = await endpoint();
    const other = await endpoint();
    const [news] = await seed([{ type: 'webhook_endpoint.failing', status: 'given_up' }]);
    await asOwner(stack, 'UPDATE event SET except_endpoint_id = $2 WHERE id = $1', [news, one.id]);
    await asOwner(stack, `DELETE FROM delivery WHERE event_id = $1`, [news]);
    assert.equal((await replay(one.id, { status: 'all' })).matched, 0);
    await completed(other.id, (await replay(other.id)).id);
    assert.deepEqual([ids(one.receiver), ids(other.receiver)], [[], [news]]);
  });

  it('goes on at a changed URL, with a new secret, and with the types that the endpoint wants by then', async () => {
    const types: EventType[] = ['card.issued', 'card.frozen'];
    const events = Array.from({ length: 120 }, (_, i): SeededEvent => {
      return { type: types[i % 2] ?? 'card.issued', ageMs: (120 - i) * 1_000, status: 'no_endpoint' };
    });
    const { earlier, id, receiver, replayId, release } = await held(await seed(events));
    const next = await startReceiver();
    receivers.push(next);
    assert.equal((await partner.call('POST', `/webhook-endpoints/${id}/rotate-secret`)).status, 200);
    const body = { url: next.url, event_types: ['card.frozen'] };
    assert.equal((await partner.call('PATCH', `/webhook-endpoints/${id}`, { body })).status, 200);
    release();
    const { sent } = await completed(id, replayId);
    const got = new Set([...ids(receiver), ...ids(next)]);
    assert.equal(sent, got.size);
    for (const [at, eventId] of earlier.entries())
      if (at % 2 === 1) assert.ok(got.has(eventId), `number ${at}`);
    assert.ok(!got.has(earlier.at(-2) ?? ''), 'the last card.issued is not wanted by then');
  });

  it('has no part in an event that a signal to its workflow requeues, which goes ahead of it', async () => {
    const { id, receiver } = await endpoint();
    const [event = ''] = await seed([{ status: 'given_up' }]);
    await asOwner(stack, 'UPDATE delivery SET replayed = true WHERE event_id = $1', [event]);
    assert.ok(await requeueForWorkflow(stack.orm, { eventId: event, endpointId: id }, null));
    const [row] = await asOwner(stack, 'SELECT replayed FROM delivery WHERE event_id = $1', [event]);
    assert.deepEqual(row, { replayed: false });
    await until('it arrives', () => receiver.received.length === 1);
  });

  it('answers 400 to a range with more than 250,000 events', async () => {
    const { id } = await endpoint();
    await asOwner(stack, [
      'SET session_replication_role = replica',
      `INSERT INTO event (id, partner_id, mode, type, body, created_at)
       SELECT 'evt_' || id_time(now()) || lpad(i::text, 16, '0'), '${partner.id}', 'test', 'ping', '{}', now()
       FROM generate_series(1, 250001) i`,
    ]);
    expectError(await ask(id, { created_gte: LONG_AGO }), 'validation_failed', ['created_gte']);
    const later = new Date(Date.now() + HOUR_MS).toISOString();
    assert.equal((await ask(id, { created_gte: later })).status, 202);
  });

  it('answers 400 to a created_lte before created_gte, and to an event type that does not exist', async () => {
    const { id } = await endpoint();
    const backwards = { created_gte: '2026-11-22T06:00:00.001Z', created_lte: '2026-11-22T06:00:00Z' };
    expectError(await ask(id, backwards), 'validation_failed', ['created_lte']);
    const eaten = { created_gte: LONG_AGO, event_types: ['card.issued', 'card.eaten'] };
    expectError(await ask(id, eaten), 'validation_failed', ['event_types.1']);
  });

  it('is completed at once from 40 days in the future on, as there is nothing to send, and sends all from the year 1 on', async () => {
    const [event] = await seedEarlier(1);
    const { id, receiver } = await endpoint();
    const later = new Date(Date.now() + 40 * 24 * HOUR_MS).toISOString();
    for (const created_gte of [later, '9999-12-31T23:59:59-12:00']) {
      const { id: replayId, status, matched } = await replay(id, { created_gte });
      assert.deepEqual([status, matched, (await read(id, replayId)).status], ['completed', 0, 'completed']);
    }
    await completed(id, (await replay(id, { created_gte: '0001-01-01T00:00:00Z' })).id);
    assert.deepEqual(ids(receiver), [event]);
  });

  it('answers 404 for a replay of another endpoint', async () => {
    const { id } = await endpoint();
    const { id: otherEndpoint } = await endpoint();
    const { id: replayId } = await replay(id);
    for (const path of [`${otherEndpoint}/replays/${replayId}`, `${id}/replays/${id}`])
      expectError(await partner.call('GET', `/webhook-endpoints/${path}`), 'webhook_replay_not_found');
  });
});

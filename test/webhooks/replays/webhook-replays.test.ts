import assert from 'node:assert/strict';
import type { EventType } from '../../../domain/event.ts';
import { query } from '../../../platform/db/sql.ts';
import { requeueForWorkflow } from '../../../webhooks/send-on-request.ts';
import { expectError } from '../../support/api/answers.ts';
import { asOwner } from '../../support/postgres.ts';
import { until } from '../../support/until.ts';
import { type SeededEvent, sendOverdue, writeEvents } from '../../support/webhooks/events.ts';
import { answer } from '../../support/webhooks/receiver.ts';
import { HOUR_MS, LONG_AGO, startReplays } from '../../support/webhooks/replays.ts';

describe('POST /webhook-endpoints/{id}/replay', () => {
  const replays = startReplays();
  const { endpoint, seed, seedEarlier, ask, read, replay, completed, ids, statusAt, insertReplay } = replays;

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
      replays.stack.orm.em.fork(),
      'SELECT id, body FROM event WHERE partner_id = $1',
      [replays.partner.id],
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
      replays.stack,
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
    const written = await writeEvents(replays.stack, replays.partner, 3);
    await until('they were tried', () => dead.receiver.received.length >= 3);
    assert.equal((await replays.partner.call('DELETE', `/webhook-endpoints/${dead.id}`)).status, 204);
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
    const [first] = (await replays.partner.call('GET', '/webhook-endpoints')).json.data;
    assert.equal((await replays.partner.call('POST', `/webhook-endpoints/${first.id}/test`)).status, 202);
    const [, from, to] = await seed([40, 30, 20, 10].map((ageMin) => ({ ageMs: ageMin * 60_000 })));
    const { id, receiver } = await endpoint();
    const createdOf = async (eventId = '') =>
      (await replays.partner.call('GET', `/events/${eventId}`)).json.created;
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
    await sendOverdue(replays.stack, [event]);
    await until('its retry arrives', async () => (await statusAt(event, id)) === 'delivered');
    assert.equal(receiver.received.length, 2);
  });

  it('takes created_gte in the time of an account whose clock was advanced', async () => {
    const [before = ''] = await seedEarlier(1);
    const { id, receiver } = await endpoint();
    await replays.partner.call('POST', '/test/clock/advance', { body: { seconds: 86_400 } });
    const [after = ''] = await writeEvents(replays.stack, replays.partner, 1);
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
    await asOwner(replays.stack, 'DELETE FROM delivery WHERE event_id = $1', [old]);
    const { id, receiver } = await endpoint();
    await completed(id, await insertReplay(id));
    assert.deepEqual(ids(receiver), [young]);
  });

  it('never sends an endpoint news of its own health, and sends it to another', async () => {
    const one = await endpoint();
    const other = await endpoint();
    const [news] = await seed([{ type: 'webhook_endpoint.failing', status: 'given_up' }]);
    await asOwner(replays.stack, 'UPDATE event SET except_endpoint_id = $2 WHERE id = $1', [news, one.id]);
    await asOwner(replays.stack, `DELETE FROM delivery WHERE event_id = $1`, [news]);
    assert.equal((await replay(one.id, { status: 'all' })).matched, 0);
    await completed(other.id, (await replay(other.id)).id);
    assert.deepEqual([ids(one.receiver), ids(other.receiver)], [[], [news]]);
  });

  it('has no part in an event that a signal to its workflow requeues, which goes ahead of it', async () => {
    const { id, receiver } = await endpoint();
    const [event = ''] = await seed([{ status: 'given_up' }]);
    await asOwner(replays.stack, 'UPDATE delivery SET replayed = true WHERE event_id = $1', [event]);
    assert.ok(await requeueForWorkflow(replays.stack.orm, { eventId: event, endpointId: id }, null));
    const [row] = await asOwner(replays.stack, 'SELECT replayed FROM delivery WHERE event_id = $1', [event]);
    assert.deepEqual(row, { replayed: false });
    await until('it arrives', () => receiver.received.length === 1);
  });

  it('answers 400 to a range with more than 250,000 events', async () => {
    const { id } = await endpoint();
    await asOwner(replays.stack, [
      'SET session_replication_role = replica',
      `INSERT INTO event (id, partner_id, mode, type, body, created_at)
       SELECT 'evt_' || id_time(now()) || lpad(i::text, 16, '0'), '${replays.partner.id}', 'test', 'ping', '{}', now()
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
      expectError(
        await replays.partner.call('GET', `/webhook-endpoints/${path}`),
        'webhook_replay_not_found',
      );
  });
});

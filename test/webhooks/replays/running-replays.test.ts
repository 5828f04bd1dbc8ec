import assert from 'node:assert/strict';
import { pino } from 'pino';
import type { EventType } from '../../../domain/event.ts';
import { query } from '../../../platform/db/sql.ts';
import { continueReplays } from '../../../webhooks/replays/continue.ts';
import { expectError } from '../../support/api/answers.ts';
import { asOwner, connectTo, ownerUrlOf } from '../../support/postgres.ts';
import { until } from '../../support/until.ts';
import { type SeededEvent, writeEvents } from '../../support/webhooks/events.ts';
import { startReceiver } from '../../support/webhooks/receiver.ts';
import { LONG_AGO, startReplays } from '../../support/webhooks/replays.ts';

describe('a replay that is running', () => {
  const replays = startReplays();
  const {
    endpoint,
    seed,
    seedEarlier,
    ask,
    read,
    replay,
    completed,
    ids,
    statusAt,
    insertReplay,
    replayOfAnother,
  } = replays;

  /** A replay of these events whose receiver answers nothing until all of it is released, so that four are on their way. */
  async function held(earlier: string[]) {
    const { id, receiver } = await endpoint();
    const released = Promise.withResolvers<void>();
    receiver.behave((_request, response) => void released.promise.then(() => response.writeHead(200).end()));
    const replayId: string = (await replay(id)).id;
    await until('four are on their way', () => receiver.received.length === 4);
    return { earlier, id, receiver, replayId, release: released.resolve };
  }

  /** Holds what a statement locks while `work` runs. */
  async function holding(statement: string, values: unknown[], work: () => Promise<void>): Promise<void> {
    await using owner = await connectTo(ownerUrlOf(replays.stack.config.databaseUrl));
    await owner.query('BEGIN');
    await owner.query(statement, values);
    await work();
  }

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
    assert.equal((await replays.partner.call('DELETE', `/webhook-endpoints/${id}`)).status, 204);
  });

  it('parks the rest if the endpoint is disabled meanwhile, is not repeated then, and sends it once that is enabled', async () => {
    const { earlier, id, receiver, replayId, release } = await held(await seedEarlier(100));
    await replays.partner.call('PATCH', `/webhook-endpoints/${id}`, { body: { status: 'disabled' } });
    release();
    const { matched, sent } = await completed(id, replayId);
    expectError(await ask(id, { created_gte: LONG_AGO }), 'invalid_state');
    assert.equal(matched, 100);
    assert.ok(sent >= 4 && sent < 100, `${sent} were sent`);
    assert.equal(await statusAt(earlier.at(-1) ?? '', id), 'parked');
    await replays.partner.call('PATCH', `/webhook-endpoints/${id}`, { body: { status: 'enabled' } });
    await until('all have arrived', () => new Set(ids(receiver)).size === 100);
  });

  it('is gone with its endpoint, and what it had not sent goes nowhere', async () => {
    const { earlier, id, receiver, replayId, release } = await held(await seedEarlier(50));
    assert.equal((await replays.partner.call('DELETE', `/webhook-endpoints/${id}`)).status, 204);
    release();
    expectError(
      await replays.partner.call('GET', `/webhook-endpoints/${id}/replays/${replayId}`),
      'webhook_replay_not_found',
    );
    await until('what was in line has ended', async () => {
      const [row] = await query<{ waiting: number }>(
        replays.stack.orm.em.fork(),
        `SELECT count(*)::int AS waiting FROM delivery WHERE partner_id = $1 AND status IN ('pending', 'retrying')`,
        [replays.partner.id],
      );
      return row?.waiting === 0;
    });
    assert.ok(receiver.received.length < earlier.length);
    const next = await endpoint();
    await completed(next.id, (await replay(next.id)).id);
    assert.ok(next.receiver.received.length >= earlier.length - receiver.received.length);
  });

  it('goes on after the clock of the database was set back by an hour', async () => {
    const { id } = await endpoint();
    const replayId = await insertReplay(id, "now() + interval '1 hour'");
    await continueReplays(replays.stack.orm, pino({ level: 'silent' }));
    assert.equal((await read(id, replayId)).status, 'completed');
  });

  it('ends without its endpoint, and delays no other', async () => {
    await insertReplay('we_deleted');
    await replayOfAnother();
    await until('it is gone', async () => {
      const rows = await asOwner(replays.stack, 'SELECT FROM webhook_replay WHERE partner_id = $1', [
        replays.partner.id,
      ]);
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
    await holding('SELECT FROM partner WHERE id = $1 FOR NO KEY UPDATE', [replays.partner.id], async () => {
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
    const [live = ''] = await writeEvents(replays.stack, replays.partner, 1);
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
        replays.stack,
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
      await asOwner(replays.stack, 'UPDATE webhook_replay SET due_at = now() WHERE id = $1', [replayId]);
      await continueReplays(replays.stack.orm, pino({ level: 'silent' }));
    }
    assert.deepEqual(await progress(), full);
    release();
    assert.equal((await replays.partner.call('DELETE', `/webhook-endpoints/${id}`)).status, 204);
  });

  it('is overtaken by an event in its line that is resent, and counts it once', async () => {
    const { earlier, id, receiver, replayId, release } = await held(await seedEarlier(20));
    const last = earlier.at(-1) ?? '';
    assert.equal((await replays.partner.call('POST', `/events/${last}/resend`)).status, 202);
    await until('it arrives', () => receiver.attempts(last).length === 1);
    assert.equal(receiver.received.length, 5);
    release();
    assert.equal((await completed(id, replayId)).sent, 20);
    assert.equal(receiver.received.length, 20);
  });

  it('goes on at a changed URL, with a new secret, and with the types that the endpoint wants by then', async () => {
    const types: EventType[] = ['card.issued', 'card.frozen'];
    const events = Array.from({ length: 120 }, (_, i): SeededEvent => {
      return { type: types[i % 2] ?? 'card.issued', ageMs: (120 - i) * 1_000, status: 'no_endpoint' };
    });
    const { earlier, id, receiver, replayId, release } = await held(await seed(events));
    const next = await startReceiver();
    replays.receivers.push(next);
    assert.equal((await replays.partner.call('POST', `/webhook-endpoints/${id}/rotate-secret`)).status, 200);
    const body = { url: next.url, event_types: ['card.frozen'] };
    assert.equal((await replays.partner.call('PATCH', `/webhook-endpoints/${id}`, { body })).status, 200);
    release();
    const { sent } = await completed(id, replayId);
    const got = new Set([...ids(receiver), ...ids(next)]);
    assert.equal(sent, got.size);
    for (const [at, eventId] of earlier.entries())
      if (at % 2 === 1) assert.ok(got.has(eventId), `number ${at}`);
    assert.ok(!got.has(earlier.at(-2) ?? ''), 'the last card.issued is not wanted by then');
  });
});

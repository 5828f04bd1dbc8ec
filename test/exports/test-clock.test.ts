import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { negotiateLimits } from '../../accounts/partners.ts';
import { readPartner } from '../../accounts/reads.ts';
import { openTestClocks } from '../../api/http/test-clocks.ts';
import { readIdTime } from '../../platform/crypto/new-id.ts';
import { openOrm } from '../../platform/db/orm.ts';
import { expectError, expectReplay } from '../support/api/answers.ts';
import { post } from '../support/api/post.ts';
import { issueCard, reveal, revealingPartner } from '../support/api/reveals.ts';
import { authorizedCard } from '../support/authorizations.ts';
import { createCard } from '../support/cards.ts';
import { column } from '../support/column.ts';
import { fundedPartner } from '../support/money.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { CallOptions, TestPartner, TestStack } from '../support/stack.ts';
import { advanceClock, readClock } from '../support/test-clock.ts';

const HOUR = 3_600;
const DAY = 24 * HOUR;
const YEAR = 31_536_000;

describe('the test clock', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let beganMs: number;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    beganMs = Date.now();
    partner = await fundedPartner(stack);
  });

  const advance = (seconds: number, options: CallOptions = {}) =>
    partner.call('POST', '/test/clock/advance', { body: { seconds }, ...options });
  /** Whether a time is of this test, in the time of an account that is so far ahead. */
  const assertNow = (time: string, aheadSeconds: number, what = 'now') => {
    const realMs = Date.parse(time) - aheadSeconds * 1_000;
    assert.ok(realMs >= beganMs && realMs <= Date.now(), `${what} is ${time}`);
  };

  it('shows real time until it is advanced, and then as far ahead as all advances together', async () => {
    const { now, ...first } = await readClock(partner);
    assert.deepEqual(first, { object: 'test_clock', offset_seconds: 0, status: 'ready', mode: 'test' });
    assertNow(now, 0);
    assertNow((await advanceClock(partner, HOUR)).now, HOUR);
    const answers = await Promise.all([DAY, DAY, 1].map((seconds) => advanceClock(partner, seconds)));
    assert.deepEqual(
      answers.map(({ object, mode }) => [object, mode]),
      [1, 2, 3].map(() => ['test_clock', 'test']),
    );
    const shown = await readClock(partner);
    assert.equal(shown.offset_seconds, HOUR + 2 * DAY + 1);
    assertNow(shown.now, HOUR + 2 * DAY + 1);
    assert.equal(Math.max(...answers.map((one) => one.offset_seconds)), shown.offset_seconds);
  });

  it('refuses to be more than ten years ahead with 422, which a key keeps', async () => {
    for (let year = 0; year < 10; year++) await advanceClock(partner, YEAR);
    const refusal = await advance(1, { idempotencyKey: 'far' });
    expectError(refusal, 'limit_exceeded');
    expectReplay(await advance(1, { idempotencyKey: 'far' }), refusal);
    assert.equal((await readClock(partner)).offset_seconds, 10 * YEAR);
    assert.equal((await createCard(partner, { amount: 1_000 })).status, 201);
  });

  it('refuses to be advanced more than 1,000 times in an hour with 429, and says when it can be', async () => {
    await asOwner(
      stack,
      `INSERT INTO test_clock_advance (partner_id, advanced_at, seconds_before, offset_seconds, shows)
       SELECT $1, at, i - 1, i, at + i * interval '1 second'
       FROM generate_series(1, 1000) i, LATERAL (SELECT now() - interval '59 minutes' + i * interval '1 second' AS at) t`,
      [partner.id],
    );
    const refused = await advance(1, { idempotencyKey: 'often' });
    expectError(refused, 'rate_limited');
    const seconds = Number(refused.headers.get('retry-after'));
    assert.ok(seconds > 0 && seconds <= 61, `${seconds}`);
    await asOwner(
      stack,
      `DELETE FROM test_clock_advance WHERE partner_id = $1 AND advanced_at < now() - interval '50 minutes'`,
      [partner.id],
    );
    assert.equal((await advance(1, { idempotencyKey: 'often' })).status, 200);
  });

  it('has been advanced even if other processes can not be told', async () => {
    const lines: string[] = [];
    const orm = await openOrm({ databaseUrl: stack.config.databaseUrl, poolSize: 1, onOwnerLogin: () => {} });
    await orm.close();
    const clocks = openTestClocks(orm, pino({}, { write: (line) => lines.push(line) }));
    await clocks.advanced(partner.id);
    assert.match(lines.join(''), /could not tell other processes/);
  });

  it('is in the header Test-Clock of every response to its test keys, and of no others', async () => {
    const other = await stack.createPartner();
    const paths = ['/ping', '/cards', '/cards/card_0', '/cards?limit=x', '/test/clock'];
    const headers = async (of: TestPartner, options: CallOptions = {}) =>
      Promise.all(paths.map(async (path) => (await of.call('GET', path, options)).headers.get('test-clock')));
    const none = paths.map(() => null);
    assert.deepEqual(await headers(partner), none);
    assertNow((await advance(DAY)).headers.get('test-clock') ?? '', DAY);
    for (const time of await headers(partner)) {
      assertNow(time ?? '', DAY);
      assert.equal(time, new Date(time ?? '').toISOString());
    }
    const date = (await partner.call('GET', '/ping')).headers.get('date') ?? '';
    assert.ok(Date.parse(date) <= Date.now(), 'the Date header is real');
    assert.deepEqual(await headers(partner, { mode: 'live' }), none);
    assert.deepEqual(await headers(other), none);
  });

  it('dates what is made, whose ids keep real time, and leaves live mode and other accounts alone', async () => {
    const other = await fundedPartner(stack);
    await advanceClock(partner, 300 * DAY);
    const card = await authorizedCard(partner, 5_000);
    const authorization = (await card.authorize(100)).json;
    const purchase = (await card.simulate({ type: 'purchase', amount: 50 })).json;
    const topUp = await post(partner, `/cards/${card.id}/topups`, { amount: 500 });
    const withdrawal = await post(partner, `/cards/${card.id}/withdrawals`, { amount: 100 });
    const made = [
      (await partner.call('GET', `/cards/${card.id}`)).json,
      authorization,
      purchase,
      topUp,
      withdrawal,
      ...(await partner.call('GET', '/events?limit=100')).json.data.filter(
        ({ data }: { data: { card?: { id: string } } }) => data.card?.id === card.id,
      ),
    ];
    assert.ok(made.length >= 10);
    for (const { id, created } of made) {
      assertNow(created, 300 * DAY, id);
      assertNow(readIdTime(id).toISOString(), 0, `the time of ${id}`);
    }
    assertNow(authorization.requests[0].created, 300 * DAY);
    assert.equal(Date.parse(authorization.expires_at) - Date.parse(authorization.created), 7 * DAY * 1_000);
    for (const { completed_at } of [topUp, withdrawal]) assertNow(completed_at, 300 * DAY);
    const [moved] = (await partner.call('GET', '/balance/transactions?limit=1')).json.data;
    assertNow(moved.created, 300 * DAY);
    const endpoint = { url: 'https://example.com/hook' };
    assertNow((await post(partner, '/webhook-endpoints', endpoint)).created, 300 * DAY);
    const rotated = await post(partner, '/webhook-endpoint/rotate-secret');
    assertNow(rotated.previous_secret_expires_at, 301 * DAY);

    assertNow((await createCard(other, { amount: 1_000 })).json.created, 0);
    assertNow((await post(partner, '/webhook-endpoints', endpoint, 'live')).created, 0);
  });

  it('keeps lists in order, and filters take its time', async () => {
    const made: { id: string; created: string }[] = [];
    for (const seconds of [1, 3, 2 * DAY, 1, 30]) {
      await advanceClock(partner, seconds);
      made.unshift((await createCard(partner, { amount: 1_000 })).json);
    }
    const list = async (path: string) => column((await partner.call('GET', path)).json.data, 'id');
    const times = made.map(({ created }) => created);
    assert.deepEqual(times, [...times].sort().reverse());
    // Each time, those around it, and some that the clock jumped over.
    for (const time of times) {
      for (const aroundMs of [-1_500, -1, 0, 1]) {
        const at = new Date(Date.parse(time) + aroundMs).toISOString();
        const later = made.filter(({ created }) => created >= at);
        assert.deepEqual(await list(`/cards?created_gte=${at}`), column(later, 'id'), `from ${at}`);
        const earlier = made.filter(({ created }) => created <= at);
        assert.deepEqual(await list(`/cards?created_lte=${at}`), column(earlier, 'id'), `to ${at}`);
      }
    }
    const events: { created: string; id: string }[] = (await partner.call('GET', '/events')).json.data;
    const newest = column(events.slice(0, 3), 'id');
    assert.deepEqual(await list(`/events?created_gte=${events[2]?.created}`), newest);
  });

  it('keeps lists in order while it is advanced by others', async () => {
    let isOver = false;
    const advancing = (async () => {
      while (!isOver) await advanceClock(partner, 7);
    })();
    const issue = async () => {
      for (let i = 0; i < 4; i++) assert.equal((await createCard(partner, { amount: 1_000 })).status, 201);
    };
    await Promise.all([1, 2, 3, 4].map(issue));
    isOver = true;
    await advancing;
    for (const path of ['/cards', '/events', '/balance/transactions']) {
      const { data } = (await partner.call('GET', `${path}?limit=100`)).json;
      const times = data.map(({ created }: { created: string }) => created);
      assert.ok(times.length >= 16, path);
      assert.deepEqual(times, [...times].sort().reverse(), path);
    }
  });

  it('moves the limit per day, the hour of the faucet and the intervals of spending limits', async () => {
    await negotiateLimits(stack.operator, partner.id, { maxIssuedPerDayCents: 10_000 });
    assert.equal((await createCard(partner, { amount: 10_000 })).status, 201);
    expectError(await createCard(partner, { amount: 100 }), 'limit_exceeded');
    await advanceClock(partner, DAY);
    const card = await createCard(partner, {
      amount: 5_000,
      spending_controls: { spending_limits: [{ amount: 300, interval: 'daily' }] },
    });
    const spend = async (amount: number) => {
      const path = `/test/cards/${card.json.id}/simulate-transaction`;
      return (await post(partner, path, { type: 'purchase', amount })).status;
    };
    const left = async () =>
      (await partner.call('GET', `/cards/${card.json.id}/spending-limits`)).json.data[0].remaining;
    assert.deepEqual([await spend(200), await spend(200), await left()], ['settled', 'declined', 100]);
    await advanceClock(partner, DAY);
    assert.deepEqual(
      [await left(), await spend(300), await spend(1), await left()],
      [300, 'settled', 'declined', 0],
    );
    expectError(await createCard(partner, { amount: 10_001 }), 'limit_exceeded');

    const credit = () =>
      partner.call('POST', '/test/credit', { body: { amount: 1 }, idempotencyKey: randomUUID() });
    await asOwner(
      stack,
      `INSERT INTO faucet_credit (id, partner_id, mode, amount_cents, created_at)
       SELECT 'credit_' || i || $1, $1, 'test', 1, account_now($1, 'test') FROM generate_series(1, 59) i`,
      [partner.id],
    );
    assert.equal((await credit()).status, 201);
    const refused = await credit();
    expectError(refused, 'rate_limited');
    assert.ok(Number(refused.headers.get('retry-after')) > 3_000);
    await advanceClock(partner, HOUR);
    assert.equal((await credit()).status, 201);
    const madeUp = `DELETE FROM faucet_credit WHERE partner_id = $1 AND id LIKE 'credit_%prt_%'`;
    await asOwner(stack, madeUp, [partner.id]);
  });

  it('moves the windows in which reveals are counted', async () => {
    const revealing = await revealingPartner(stack);
    const cardId = await issueCard(revealing, 'test');
    for (let i = 0; i < 3; i++) assert.equal((await reveal(revealing, cardId)).status, 200);
    expectError(await reveal(revealing, cardId), 'reveal_limit_reached');
    await advanceClock(revealing, 61);
    for (let i = 0; i < 3; i++) assert.equal((await reveal(revealing, cardId)).status, 200);
    const refused = await reveal(revealing, cardId);
    expectError(refused, 'reveal_limit_reached');
    assert.ok(Number(refused.headers.get('retry-after')) <= 60);
  });

  it('is shown to operators with the account', async () => {
    assert.equal((await readPartner(stack.orm, partner.id)).test_clock, null);
    await advanceClock(partner, 90);
    const { test_clock: shown } = await readPartner(stack.orm, partner.id);
    assert.equal(shown?.offset_seconds, 90);
    assertNow(shown?.now ?? '', 90);
  });
});

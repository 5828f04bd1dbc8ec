import assert from 'node:assert/strict';
import { authorizedCard, onAuthorization } from '../support/authorizations.ts';
import { fundedPartner } from '../support/money.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';
import { advanceClock, readClock, untilReady } from '../support/test-clock.ts';
import { until } from '../support/until.ts';
import { setUrl } from '../support/webhooks/events.ts';
import { answer, type Receiver, startReceiver } from '../support/webhooks/receiver.ts';

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** More than a worker looks at at once. */
const MANY = 600;

describe('the test clock makes due', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let receiver: Receiver;
  let beganMs: number;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    beganMs = Date.now();
    partner = await fundedPartner(stack);
    receiver = await startReceiver();
    await setUrl(stack, partner, receiver.url);
  });
  afterEach(() => receiver.stop());

  /** Whether a time is of this test, in the time of an account that is so far ahead. */
  const assertNow = (time: string, aheadSeconds: number, what = 'now') => {
    const realMs = Date.parse(time) - aheadSeconds * 1_000;
    assert.ok(realMs >= beganMs && realMs <= Date.now(), `${what} is ${time}`);
  };

  const deliveryOf = async (id: string) => (await partner.call('GET', `/events/${id}`)).json.delivery;
  const ping = async () => (await partner.call('POST', '/webhook-endpoint/test')).json.id;
  const attempted = (id: string, count: number) =>
    until(`there are ${count} attempts`, async () => (await deliveryOf(id)).attempts.length === count);

  it("a webhook's whole schedule in one jump, each attempt dated when it is made", async () => {
    receiver.behave(answer(503));
    const id = await ping();
    await attempted(id, 1);
    await advanceClock(partner, 3 * HOUR);
    await attempted(id, 5);
    const { status, attempts, next_attempt_at } = await deliveryOf(id);
    assert.deepEqual([status, next_attempt_at], ['given_up', null]);
    assertNow(attempts[0].started_at, 0);
    for (const { started_at } of attempts.slice(1)) assertNow(started_at, 3 * HOUR);
    await untilReady(partner);
    assert.equal(receiver.received.length, 5);
    for (const { headers } of receiver.received) {
      const at = new Date(Number(headers['x-service-timestamp'])).toISOString();
      assertNow(at, 0, 'the timestamp of the signature is real');
    }
  });

  it('only the attempts that are due by then, and the others from their due times', async () => {
    receiver.behave(answer(503));
    const id = await ping();
    await attempted(id, 1);
    const due = async () => Date.parse((await deliveryOf(id)).next_attempt_at);
    const firstRetryMs = await due();
    await advanceClock(partner, 20 * MINUTE);
    await attempted(id, 3);
    const fourthMs = firstRetryMs + 35 * MINUTE * 1_000;
    assert.equal(await due(), fourthMs);
    await advanceClock(partner, 5 * MINUTE);
    await untilReady(partner);
    assert.deepEqual([(await deliveryOf(id)).attempts.length, await due()], [3, fourthMs]);
    await advanceClock(partner, 20 * MINUTE);
    await attempted(id, 4);
    assert.equal(await due(), fourthMs + 2 * HOUR * 1_000);
    receiver.behave(answer(200));
    await advanceClock(partner, 2 * HOUR);
    await attempted(id, 5);
    assert.equal((await deliveryOf(id)).status, 'delivered');
  });

  it('an authorization that expires, once it has expired for its account', async () => {
    const card = await authorizedCard(partner, 1_000);
    const { id } = (await card.authorize(400)).json;
    await advanceClock(partner, 7 * DAY - 3_600);
    await untilReady(partner);
    assert.equal((await onAuthorization(partner, id).read()).status, 'pending');
    await advanceClock(partner, 3_600);
    await untilReady(partner);
    assert.equal((await onAuthorization(partner, id).read()).status, 'expired');
    assert.deepEqual(await card.money(), [1_000, 1_000]);
    const [{ created }] = (await partner.call('GET', '/events?limit=1&type=card.authorization.updated')).json
      .data;
    assertNow(created, 7 * DAY);
  });

  it('nothing without a worker, and is advancing until one has done it', async () => {
    const alone = await fundedPartner(await sharedStack('api'));
    await (await authorizedCard(alone, 10_000)).authorize(100);
    assert.equal((await advanceClock(alone, 8 * DAY)).status, 'advancing');
    assert.equal((await readClock(alone)).status, 'advancing');
  });

  it("a webhook's whole schedule if the jump comes during its first attempt", async () => {
    const { promise: mayAnswer, resolve } = Promise.withResolvers<void>();
    receiver.behave((...request) => void mayAnswer.then(() => answer(503)(...request)));
    const id = await ping();
    await until('it is being tried', async () => receiver.received.length === 1);
    await advanceClock(partner, 3 * HOUR);
    resolve();
    await attempted(id, 5);
    assert.equal((await deliveryOf(id)).status, 'given_up');
  });

  it('nothing else has to wait behind a receiver that hangs', async () => {
    receiver.behave(answer(503));
    await attempted(await ping(), 1);
    receiver.behave(() => {});
    const { length } = receiver.received;
    await advanceClock(partner, HOUR);
    await until('it hangs', async () => receiver.received.length > length);
    const { json: deposit } = await partner.call('POST', '/test/deposits', { body: { amount: 1_000 } });
    await until('its payment has arrived', async () => {
      const { json } = await partner.call('GET', `/funding/deposits/${deposit.id}`);
      return json.status === 'confirmed';
    });
  });

  it('hundreds of things at once, while what is due for another account is in time', async () => {
    const other = await fundedPartner(stack);
    const theirs = (await (await authorizedCard(other, 1_000)).authorize(400)).json;
    await asOwner(
      stack,
      `INSERT INTO deposit (id, partner_id, mode, network, contract_address, address, amount_cents, created_at, changed_at,
         expires_at, told_version, test_payment, due_at)
       SELECT 'dep_t' || lpad(n::text, 5, '0'), $1, 'test', 'test', 'test_usdt', 'test_', 100, now(), now(),
         now() + interval '8 hours', NULL, 'none', now() + interval '8 hours' FROM generate_series(1, ${MANY}) n`,
      [partner.id],
    );
    await advanceClock(partner, 9 * HOUR);
    await advanceClock(other, 8 * DAY);
    const isExpired = async () => (await onAuthorization(other, theirs.id).read()).status === 'expired';
    await until("the other account's authorization has expired", isExpired);
    await untilReady(partner);
    const [expired] = await asOwner<{ count: number }>(
      stack,
      `SELECT count(*)::int AS count FROM deposit WHERE partner_id = $1 AND status = 'expired'`,
      [partner.id],
    );
    assert.equal(expired?.count, MANY);
  });

  it('nothing for another account, or for live mode', async () => {
    const other = await fundedPartner(stack);
    receiver.behave(answer(503));
    await setUrl(stack, other, receiver.url);
    const { id } = (await other.call('POST', '/webhook-endpoint/test')).json;
    const delivery = async () => (await other.call('GET', `/events/${id}`)).json.delivery;
    await until('it was tried', async () => (await delivery()).attempts.length === 1);
    await advanceClock(partner, 30 * DAY);
    await untilReady(partner);
    const { attempts, status } = await delivery();
    assert.deepEqual([attempts.length, status], [1, 'retrying']);
  });

  it('the end of the previous webhook secret', async () => {
    const created = await partner.call('PUT', '/webhook-endpoint', {
      body: { url: receiver.url, standard_webhooks: true },
    });
    assert.equal(created.status, 200, created.text);
    await partner.call('POST', '/webhook-endpoint/rotate-secret');
    const signatures = async () => {
      const before = receiver.received.length;
      await ping();
      await until('it was sent', async () => receiver.received.length > before);
      return String(receiver.received.at(-1)?.headers['webhook-signature']).split(' ').length;
    };
    assert.equal(await signatures(), 2);
    await advanceClock(partner, 23 * HOUR);
    assert.equal(await signatures(), 2);
    await advanceClock(partner, HOUR);
    assert.equal(await signatures(), 1);
  });
});

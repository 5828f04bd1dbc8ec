import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { pino } from 'pino';
import { startApi } from '../../api/server.ts';
import { freePort } from '../../dev/free-port.ts';
import { expectError } from '../support/api/answers.ts';
import { asOwner } from '../support/postgres.ts';
import { partnerAt, startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';
import { seedEvents, workflowIdOf } from '../support/webhooks/events.ts';
import { answer, type Receiver, startReceiver } from '../support/webhooks/receiver.ts';

describe('POST /events/{eventId}/resend', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let receiver: Receiver;
  before(async () => {
    stack = await startTestStack({ webhookDelaysMs: [50, 50] });
  });
  after(() => stack.stop());
  beforeEach(async () => {
    partner = await stack.createPartner();
    receiver = await startReceiver();
  });
  afterEach(() => receiver.stop());

  const setEndpoint = () => partner.call('PUT', '/webhook-endpoint', { body: { url: receiver.url } });
  const resend = (id: string | undefined) => partner.call('POST', `/events/${id}/resend`);
  const read = async (id: string | undefined) => (await partner.call('GET', `/events/${id}`)).json;
  const settled = (id: string | undefined, status: string, attempts: number) =>
    until(`${id} is ${status}`, async () => {
      const { delivery } = await read(id);
      return delivery.status === status && delivery.attempts.length === attempts;
    });

  for (const status of ['delivered', 'no_endpoint', 'given_up', 'retrying'] as const) {
    it(`sends an event that is ${status} and has no workflow with the same id and body`, async () => {
      await setEndpoint();
      const [id] = await seedEvents(stack, partner, [{ status }, { status }]);
      const { status: code, json } = await resend(id);
      assert.deepEqual([code, json.id], [202, id]);
      // The relay may have been quicker than the answer.
      assert.match(json.delivery.status, /^(pending|delivered)$/);
      await settled(id, 'delivered', 1);
      const { object, delivery, deliveries, ...envelope } = await read(id);
      assert.deepEqual(
        receiver.received.map(({ body }) => JSON.parse(body)),
        [envelope],
      );
    });
  }

  it('restarts the schedule of an event that is about to be sent, and leaves it to the relay', async () => {
    await setEndpoint();
    const [id] = await seedEvents(stack, partner, [{ status: 'retrying' }]);
    await asOwner(
      stack,
      `UPDATE delivery SET status = 'pending', lease_expires_at = now() + interval '4 minutes', schedule_attempts = 2
       WHERE event_id = $1`,
      [id],
    );
    const { status, json } = await resend(id);
    assert.deepEqual([status, json.delivery.status], [202, 'pending']);
    const [row] = await asOwner(
      stack,
      'SELECT lease_expires_at > now() AS is_leased, schedule_attempts FROM delivery WHERE event_id = $1',
      [id],
    );
    assert.deepEqual(row, { is_leased: true, schedule_attempts: 0 });
  });

  it('makes an attempt that is being made the first of a new schedule', async () => {
    const unanswered: ServerResponse[] = [];
    receiver.behave((request, response, number) =>
      number === 2 ? unanswered.push(response) : answer(500)(request, response, number),
    );
    await setEndpoint();
    const { json } = await partner.call('POST', '/webhook-endpoint/test');
    await until('the last attempt is being made', () => unanswered.length === 1);
    assert.equal((await resend(json.id)).status, 202);
    unanswered[0]?.writeHead(500).end();
    await settled(json.id, 'given_up', 5);
  });

  it('restarts the attempts of an event that was given up, and its workflow ends on delivery', async () => {
    receiver.behave(answer(500));
    await setEndpoint();
    const { json } = await partner.call('POST', '/webhook-endpoint/test');
    await settled(json.id, 'given_up', 3);
    receiver.behave(answer(200));
    const resent = await resend(json.id);
    assert.equal(resent.status, 202);
    assert.ok(['pending', 'delivered'].includes(resent.json.delivery.status));
    await settled(json.id, 'delivered', 4);
    assert.equal(new Set(receiver.received.map(({ body }) => body)).size, 1);
    const handle = stack.client.workflow.getHandle(await workflowIdOf(stack, json.id));
    await until('the workflow ends', async () => (await handle.describe()).status.name === 'COMPLETED');
    assert.equal((await read(json.id)).delivery.status, 'delivered');
  });

  it('answers 404 without an endpoint or after 30 days and 409 with a disabled endpoint, and changes nothing', async () => {
    const [id] = await seedEvents(stack, partner, [{ status: 'no_endpoint' }]);
    expectError(await resend(id), 'webhook_endpoint_not_found');
    await setEndpoint();
    await asOwner(
      stack,
      `UPDATE webhook_endpoint SET status = 'disabled', disabled_reason = 'r' WHERE partner_id = $1`,
      [partner.id],
    );
    expectError(await resend(id), 'invalid_state');
    assert.equal((await read(id)).delivery.status, 'no_endpoint');
    const [old] = await seedEvents(stack, partner, [{ ageMs: 31 * 24 * 3_600_000 }]);
    expectError(await resend(old), 'event_not_found');
  });

  it('answers 429 after too many requests, and changes nothing', async () => {
    await setEndpoint();
    const [id] = await seedEvents(stack, partner, [{ status: 'delivered' }]);
    await asOwner(
      stack,
      `INSERT INTO webhook_allowance (partner_id, mode, full_at) VALUES ($1, 'test', now() + interval '70 seconds')`,
      [partner.id],
    );
    const refused = await resend(id);
    expectError(refused, 'rate_limited');
    const seconds = Number(refused.headers.get('retry-after'));
    assert.ok(seconds >= 1 && seconds <= 11, `${seconds}`);
    assert.equal((await read(id)).delivery.status, 'delivered');
    expectError(await resend(`evt_${'0'.repeat(26)}`), 'event_not_found');
    await partner.call('DELETE', '/webhook-endpoint');
    await setEndpoint();
    expectError(await resend(id), 'rate_limited');
  });

  it('answers 202 while Temporal is away, and the event is sent', async () => {
    const nowhere = { connectionOptions: { address: `127.0.0.1:${await freePort()}` }, namespace: 'default' };
    const config = { ...stack.config, port: await freePort(), temporal: nowhere };
    const api = await startApi(config, pino({ level: 'silent' }));
    try {
      await setEndpoint();
      for (const id of await seedEvents(stack, partner, [{ status: 'given_up' }, {}])) {
        const resent = await partnerAt(partner, api.url).call('POST', `/events/${id}/resend`);
        assert.equal(resent.status, 202);
        await settled(id, 'delivered', 1);
      }
    } finally {
      await api.stop();
    }
  });
});

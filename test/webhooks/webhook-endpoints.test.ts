import assert from 'node:assert/strict';
import { expectError } from '../support/api/answers.ts';
import { column } from '../support/column.ts';
import { environmentOf, operateIn } from '../support/operator/operate.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';
import { sendOverdue, writeEvents } from '../support/webhooks/events.ts';
import { answer, type Receiver, startReceiver } from '../support/webhooks/receiver.ts';

interface Delivery {
  endpoint_id: string;
  status: string;
  attempts: unknown[];
}

describe('/webhook-endpoints', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let receivers: [Receiver, Receiver];
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    partner = await stack.createPartner();
    receivers = [await startReceiver(), await startReceiver()];
  });
  afterEach(async () => {
    for (const receiver of receivers) await receiver.stop();
  });

  const post = (body: unknown) => partner.call('POST', '/webhook-endpoints', { body });
  const patch = (id: string, body: unknown) => partner.call('PATCH', `/webhook-endpoints/${id}`, { body });
  const get = async (id: string) => (await partner.call('GET', `/webhook-endpoints/${id}`)).json;
  const readEvent = async (id: string) => (await partner.call('GET', `/events/${id}`)).json;
  /** The status of an event's delivery to each endpoint, by its id. */
  const statuses = async (id: string): Promise<Record<string, string>> => {
    const { deliveries } = await readEvent(id);
    return Object.fromEntries(deliveries.map(({ endpoint_id, status }: Delivery) => [endpoint_id, status]));
  };
  const stand = (id: string, expected: Record<string, string>) =>
    until(`${id} stands as ${JSON.stringify(expected)}`, async () => {
      const found = await statuses(id);
      return (
        Object.keys(found).length === Object.keys(expected).length &&
        Object.entries(expected).every(([endpoint, status]) => found[endpoint] === status)
      );
    });
  /** Two endpoints, the first of which is the older one. */
  async function createTwo(body: object = {}): Promise<[string, string]> {
    const first = (await post({ url: receivers[0].url })).json.id;
    const second = (await post({ url: receivers[1].url, ...body })).json.id;
    return [first, second];
  }

  /** News of the endpoints, newest first. */
  const told = async (what: 'disabled' | 'failing') =>
    (await partner.call('GET', `/events?type=webhook_endpoint.${what}`)).json.data;

  it('creates an endpoint with 201, and shows its secret only then', async () => {
    const body = {
      url: receivers[0].url,
      event_types: ['ping', 'ping'],
      description: 'Books',
      standard_webhooks: true,
    };
    const { status, json } = await post(body);
    assert.equal(status, 201);
    const { id, secret, created, ...rest } = json;
    assert.match(id, /^we_[0-9a-z]{26}$/);
    assert.match(secret, /^whsec_/);
    const expected = {
      object: 'webhook_endpoint',
      url: receivers[0].url,
      mode: 'test',
      event_types: ['ping'],
      description: 'Books',
      status: 'enabled',
      disabled_reason: null,
      standard_webhooks: true,
      previous_secret_expires_at: null,
      consecutive_failures: 0,
      failing_since: null,
      last_success_at: null,
      last_failure: null,
    };
    assert.deepEqual(rest, expected);
    assert.deepEqual(await get(id), { id, created, ...expected });
  });

  it('lists them newest first, and the singular path acts on the oldest', async () => {
    const [first, second] = await createTwo();
    const { json } = await partner.call('GET', '/webhook-endpoints');
    assert.deepEqual(column(json.data, 'id'), [second, first]);
    const page = (await partner.call('GET', `/webhook-endpoints?limit=1&starting_after=${second}`)).json;
    assert.deepEqual([page.data[0].id, page.has_more], [first, false]);
    assert.equal((await partner.call('GET', '/webhook-endpoint')).json.id, first);
    assert.equal((await partner.call('DELETE', '/webhook-endpoint')).status, 204);
    assert.equal((await partner.call('GET', '/webhook-endpoint')).json.id, second);
    const changed = await partner.call('PUT', '/webhook-endpoint', { body: { url: receivers[0].url } });
    assert.deepEqual(
      [changed.json.id, changed.json.url, changed.json.secret],
      [second, receivers[0].url, undefined],
    );
  });

  it('refuses a sixth one, even if one is disabled or they come at once, and one URL twice', async () => {
    const urls = Array.from({ length: 7 }, (_, i) => `https://hooks.example.com/${i}`);
    const answers = await Promise.all(urls.map((url) => post({ url })));
    const codes = answers.map(({ status, json }) => (status === 201 ? 201 : json.error.code)).sort();
    assert.deepEqual(codes, [201, 201, 201, 201, 201, 'limit_exceeded', 'limit_exceeded']);
    const { json } = await partner.call('GET', '/webhook-endpoints');
    const [one, other] = json.data;
    await patch(one.id, { status: 'disabled' });
    expectError(await post({ url: 'https://hooks.example.com/sixth' }), 'limit_exceeded');
    expectError(await post({ url: one.url }), 'webhook_endpoint_url_taken');
    expectError(await patch(other.id, { url: one.url }), 'webhook_endpoint_url_taken');
    assert.equal((await patch(other.id, { url: other.url })).status, 200, 'its own URL');
    const body = { url: one.url };
    expectError(await partner.call('PUT', '/webhook-endpoint', { body }), 'webhook_endpoint_url_taken');
    const live = await partner.call('POST', '/webhook-endpoints', { body, mode: 'live' });
    assert.equal(live.status, 201);
  });

  it('lets one URL win that is created several times at once', async () => {
    const answers = await Promise.all([1, 2, 3, 4].map(() => post({ url: 'https://hooks.example.com/' })));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 409, 409, 409]);
  });

  it('gets a delivery of each event that it wants, with its own attempts', async () => {
    const [first, second] = await createTwo();
    const { id: third } = (
      await post({ url: 'https://hooks.example.com/', event_types: ['deposit.confirmed'] })
    ).json;
    receivers[1].behave(answer(503));
    const [id = ''] = await writeEvents(stack, partner, 1);
    await stand(id, { [first]: 'delivered', [second]: 'retrying' });
    await sendOverdue(stack, [id]);
    await until('the second one has failed twice', async () => {
      const { deliveries } = await readEvent(id);
      return deliveries[1]?.attempts.length === 2;
    });
    await stand(id, { [first]: 'delivered', [second]: 'retrying' });
    const { delivery, deliveries } = await readEvent(id);
    const { endpoint_id, ...oldest } = deliveries[0];
    assert.deepEqual(delivery, oldest);
    assert.deepEqual([deliveries[0].attempts.length, deliveries[1].attempts.length], [1, 2]);
    for (const status of ['delivered', 'retrying']) {
      const { json } = await partner.call('GET', `/events?delivery_status=${status}`);
      assert.deepEqual(column(json.data, 'id'), [id]);
    }
    const byType = (await partner.call('GET', '/events?type=ping&limit=1')).json;
    assert.deepEqual([byType.data.length, byType.has_more], [1, false]);
    assert.equal((await get(third)).last_success_at, null);
  });

  it('gets the types that it was changed to, and all of them again after null', async () => {
    const [first, second] = await createTwo({ event_types: ['card.issued'] });
    const [before = ''] = await writeEvents(stack, partner, 1);
    await stand(before, { [first]: 'delivered' });
    expectError(await patch(second, {}), 'validation_failed', ['body']);
    assert.deepEqual((await patch(second, { event_types: ['ping'] })).json.event_types, ['ping']);
    const [wanted = ''] = await writeEvents(stack, partner, 1);
    await stand(wanted, { [first]: 'delivered', [second]: 'delivered' });
    assert.deepEqual((await patch(second, { description: 'Books' })).json.event_types, ['ping']);
    await patch(second, { event_types: ['card.issued'] });
    assert.equal((await patch(second, { event_types: null })).json.event_types, null);
    const [after = ''] = await writeEvents(stack, partner, 1);
    await stand(after, { [first]: 'delivered', [second]: 'delivered' });
  });

  it('ignores an Idempotency-Key, so that no secret is stored or shown again', async () => {
    const idempotencyKey = 'one key for all';
    const once = (method: string, path: string, body?: object) =>
      partner.call(method, path, { body, idempotencyKey });
    const created = await once('POST', '/webhook-endpoints', { url: receivers[0].url });
    assert.equal(created.status, 201);
    assert.equal(created.headers.get('operation-id'), null);
    expectError(
      await once('POST', '/webhook-endpoints', { url: receivers[0].url }),
      'webhook_endpoint_url_taken',
    );
    const path = `/webhook-endpoints/${created.json.id}`;
    const rotated = await once('POST', `${path}/rotate-secret`);
    const again = await once('POST', `${path}/rotate-secret`);
    const secrets = [created, rotated, again].map(({ json }) => json.secret);
    assert.equal(new Set(secrets).size, 3);
    assert.equal((await once('PATCH', path, { status: 'disabled' })).json.status, 'disabled');
    assert.equal((await once('PATCH', path, { status: 'enabled' })).json.status, 'enabled');
    const pings = [await once('POST', `${path}/test`), await once('POST', `${path}/test`)];
    assert.notEqual(pings[0]?.json.id, pings[1]?.json.id);
    assert.equal((await once('DELETE', path)).status, 204);
    expectError(await once('DELETE', path), 'webhook_endpoint_not_found');
    const claims = await asOwner(stack, 'SELECT FROM idempotency_claim WHERE partner_id = $1', [partner.id]);
    assert.equal(claims.length, 0);
  });

  it('leaves an event alone that no endpoint wants, until one is named', async () => {
    const { id: endpoint } = (await post({ url: receivers[0].url, event_types: ['card.issued'] })).json;
    const [id = ''] = await writeEvents(stack, partner, 1);
    const { delivery, deliveries } = await readEvent(id);
    assert.deepEqual([delivery.status, deliveries], ['no_endpoint', []]);
    expectError(await partner.call('POST', `/events/${id}/resend`), 'webhook_endpoint_not_found');
    const named = await partner.call('POST', `/events/${id}/resend`, { body: { endpoint_id: endpoint } });
    assert.equal(named.status, 202);
    await stand(id, { [endpoint]: 'delivered' });
  });

  it('gets a ping alone, whatever its event types', async () => {
    const [first, second] = await createTwo({ event_types: ['card.issued'] });
    const { status, json } = await partner.call('POST', `/webhook-endpoints/${second}/test`);
    assert.equal(status, 202);
    assert.equal(json.data.webhook_endpoint.id, second);
    await stand(json.id, { [second]: 'delivered' });
    const oldest = (await partner.call('POST', '/webhook-endpoint/test')).json;
    await stand(oldest.id, { [first]: 'delivered' });
    assert.deepEqual([receivers[0].received.length, receivers[1].received.length], [1, 1]);
  });

  it('gets what is resent: each that the event was for, or the one that is named', async () => {
    const [first, second] = await createTwo();
    const [id = ''] = await writeEvents(stack, partner, 1);
    await stand(id, { [first]: 'delivered', [second]: 'delivered' });
    const resend = (body?: object) => partner.call('POST', `/events/${id}/resend`, { body });
    assert.equal((await resend()).status, 202);
    await until('both get it again', () => receivers.every(({ received }) => received.length === 2));
    // An attempt that is being made is all that a resend asks for, so it has to have ended.
    await stand(id, { [first]: 'delivered', [second]: 'delivered' });
    assert.equal((await resend({ endpoint_id: second })).status, 202);
    await until('the second one gets it again', () => receivers[1].received.length === 3);
    assert.equal(receivers[0].received.length, 2);
    expectError(await resend({ endpoint_id: `we_${'0'.repeat(26)}` }), 'webhook_endpoint_not_found');
    await patch(second, { status: 'disabled' });
    expectError(await resend({ endpoint_id: second }), 'invalid_state');
  });

  it('gets what is resent if its only delivery was at an endpoint that is deleted, if it wants it now', async () => {
    const gone = (await post({ url: receivers[0].url })).json.id;
    const [id = ''] = await writeEvents(stack, partner, 1);
    await stand(id, { [gone]: 'delivered' });
    await partner.call('DELETE', `/webhook-endpoints/${gone}`);
    const url = 'https://hooks.example.com/';
    assert.equal((await post({ url, event_types: ['card.issued'] })).status, 201);
    const resend = () => partner.call('POST', `/events/${id}/resend`);
    expectError(await resend(), 'webhook_endpoint_not_found');
    const { id: wanting } = (await post({ url: receivers[1].url })).json;
    assert.equal((await resend()).status, 202);
    await stand(id, { [gone]: 'delivered', [wanting]: 'delivered' });
    assert.deepEqual([receivers[0].received.length, receivers[1].received.length], [1, 1]);
  });

  it('parks only its own events while it is disabled, and gets them when it is enabled', async () => {
    const [first, second] = await createTwo();
    const disabled = (await patch(second, { status: 'disabled' })).json;
    assert.deepEqual([disabled.status, disabled.disabled_reason], ['disabled', 'you disabled it']);
    const [id = ''] = await writeEvents(stack, partner, 1);
    await stand(id, { [first]: 'delivered', [second]: 'parked' });
    expectError(await partner.call('POST', `/webhook-endpoints/${second}/test`), 'invalid_state');
    assert.equal((await patch(second, { status: 'enabled' })).json.disabled_reason, null);
    await stand(id, { [first]: 'delivered', [second]: 'delivered' });
  });

  it('is disabled alone by its 410, of which the others are told', async () => {
    const [first, second] = await createTwo({ url: `${receivers[1].url}/token?of=ours` });
    receivers[1].behave(answer(410));
    const [id = ''] = await writeEvents(stack, partner, 1);
    await stand(id, { [first]: 'delivered', [second]: 'parked' });
    const { status, consecutive_failures, last_failure } = await get(second);
    assert.deepEqual([status, consecutive_failures, last_failure.http_status], ['disabled', 1, 410]);
    const [news] = await told('disabled');
    assert.equal(news.data.webhook_endpoint.id, second);
    assert.equal(news.data.webhook_endpoint.secret, undefined);
    assert.equal(news.data.webhook_endpoint.url, new URL(receivers[1].url).origin);
    assert.equal((await get(second)).url, `${receivers[1].url}/token?of=ours`);
    await stand(news.id, { [first]: 'delivered' });
  });

  it('is disabled by its account or by an operator, of which the others are told, each time once', async () => {
    const [first, second] = await createTwo();
    const reasons = async () => {
      const reasons: string[] = [];
      for (const { id, data } of await told('disabled')) {
        assert.equal(data.webhook_endpoint.id, second);
        await stand(id, { [first]: 'delivered' });
        reasons.push(data.webhook_endpoint.disabled_reason);
      }
      return reasons;
    };
    await patch(second, { status: 'disabled' });
    await patch(second, { status: 'disabled' });
    assert.deepEqual(await reasons(), ['you disabled it']);
    await patch(second, { status: 'enabled' });
    const operate = operateIn(environmentOf(stack.config));
    const flags = ['--mode', 'test', '--endpoint', second];
    for (const _ of [1, 2])
      assert.equal((await operate('webhook-endpoint', 'disable', partner.id, ...flags)).code, 0);
    assert.deepEqual(await reasons(), ['disabled by an operator', 'you disabled it']);
    assert.deepEqual(receivers[1].received, []);
  });

  it('is delivered or given up whatever is sent there as it is deleted', async () => {
    const [, second] = await createTwo();
    const released = Promise.withResolvers<void>();
    receivers[1].behave(
      (_request, response) => void released.promise.then(() => response.writeHead(200).end()),
    );
    const ids = await writeEvents(stack, partner, 20);
    await until('some are on their way', () => receivers[1].received.length > 0);
    await partner.call('DELETE', `/webhook-endpoints/${second}`);
    released.resolve();
    await until('all have ended', async () => {
      const ends = await Promise.all(ids.map(async (id) => (await statuses(id))[second] ?? ''));
      return ends.every((status) => ['delivered', 'given_up'].includes(status));
    });
  });

  it('gets a new secret alone', async () => {
    const [first, second] = await createTwo();
    const { status, json } = await partner.call('POST', `/webhook-endpoints/${second}/rotate-secret`);
    assert.equal(status, 200);
    assert.match(json.secret, /^whsec_/);
    assert.notEqual(json.previous_secret_expires_at, null);
    assert.equal((await get(first)).previous_secret_expires_at, null);
  });

  it('counts its failed attempts since the last success, and tells the others once after ten', async () => {
    const [first, second] = await createTwo();
    receivers[1].behave(answer(503));
    const ids = await writeEvents(stack, partner, 12);
    await until('all have failed', async () => (await get(second)).consecutive_failures === 12);
    const failing = await get(second);
    assert.ok(Date.parse(failing.failing_since) <= Date.parse(failing.last_failure.at));
    assert.deepEqual([failing.last_failure.http_status, failing.last_failure.error], [503, 'http_503']);
    assert.deepEqual([(await get(first)).consecutive_failures, (await get(first)).failing_since], [0, null]);
    await until('the others are told', async () => (await told('failing')).length === 1);
    const [event] = await told('failing');
    assert.equal(event.data.webhook_endpoint.id, second);
    await stand(event.id, { [first]: 'delivered' });
    receivers[1].behave(answer(200));
    await partner.call('POST', `/events/${ids[0]}/resend`, { body: { endpoint_id: second } });
    await until('it has succeeded', async () => (await get(second)).consecutive_failures === 0);
    const healthy = await get(second);
    assert.equal(healthy.failing_since, null);
    assert.notEqual(healthy.last_success_at, null);
    assert.equal((await told('failing')).length, 1);
  });
});

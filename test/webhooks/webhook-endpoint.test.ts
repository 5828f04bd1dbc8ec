import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { Mode } from '../../domain/mode.ts';
import { openEndpointSecret } from '../../webhooks/secrets.ts';
import { expectError } from '../support/api/answers.ts';
import { column } from '../support/column.ts';
import { environmentOf, operateIn } from '../support/operator/operate.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';
import { seedEvents } from '../support/webhooks/events.ts';
import { type Receiver, startReceiver } from '../support/webhooks/receiver.ts';

const URL_A = 'https://hooks.example.com/a?x=1';
const URL_B = 'https://hooks.example.com:8443/b';
const ROUTES_WITHOUT_BODY = [
  ['GET', ''],
  ['DELETE', ''],
  ['POST', '/rotate-secret'],
  ['POST', '/test'],
] as const;

describe('/webhook-endpoint', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack();
  });
  beforeEach(async () => {
    partner = await stack.createPartner();
  });

  const put = (body: unknown, mode: Mode = 'test') =>
    partner.call('PUT', '/webhook-endpoint', { body, mode });
  const get = (mode: Mode = 'test') => partner.call('GET', '/webhook-endpoint', { mode });
  const rotate = () => partner.call('POST', '/webhook-endpoint/rotate-secret');

  /** The secret that signs, by the row. */
  async function storedSecret(name: 'secret' | 'previous_secret' = 'secret'): Promise<string> {
    const [row] = await asOwner<{ id: string; sealed: Buffer }>(
      stack,
      `SELECT id, ${name} AS sealed FROM webhook_endpoint WHERE partner_id = $1 AND mode = 'test'`,
      [partner.id],
    );
    const key = { id: row?.id ?? '', partner_id: partner.id, mode: 'test' };
    return openEndpointSecret(stack.operator.ring, key, row?.sealed as Buffer);
  }

  it('is made by PUT for all events and with no other signature, and its secret is shown only then', async () => {
    const { status, json } = await put({ url: URL_A });
    assert.equal(status, 200);
    const { secret, ...shown } = json;
    assert.deepEqual([shown.url, shown.event_types, shown.standard_webhooks], [URL_A, null, false]);
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{40}$/);
    assert.equal(await storedSecret(), secret);
    const read = await get();
    assert.deepEqual([read.status, read.json], [200, shown]);
  });

  it('has a secret that appears in no log line, and in clear in no table', async () => {
    const first = (await put({ url: URL_A })).json.secret;
    const second = (await rotate()).json.secret;
    const [row] = await asOwner<{ row: string }>(
      stack,
      'SELECT row_to_json(w)::text AS row FROM webhook_endpoint w WHERE partner_id = $1',
      [partner.id],
    );
    for (const secret of [first, second]) {
      const text = secret.slice('whsec_'.length);
      for (const bytes of [Buffer.from(text), Buffer.from(text, 'base64')])
        assert.ok(!row?.row.includes(bytes.toString('hex')) && !row?.row.includes(text));
      assert.ok(stack.logLines.every((line) => !line.includes(text)));
    }
  });

  it('keeps its secret after PUT with another URL, and standard_webhooks unless that is given', async () => {
    const { secret } = (await put({ url: URL_A, standard_webhooks: true })).json;
    const changed = await put({ url: URL_B });
    assert.deepEqual(
      [changed.status, changed.json.url, changed.json.secret, changed.json.standard_webhooks],
      [200, URL_B, undefined, true],
    );
    assert.equal(await storedSecret(), secret);
    assert.equal((await put({ url: URL_B, standard_webhooks: false })).json.standard_webhooks, false);
  });

  it('is separate for each mode and each account', async () => {
    const test = (await put({ url: URL_A })).json;
    expectError(await get('live'), 'webhook_endpoint_not_found');
    const live = (await put({ url: URL_B }, 'live')).json;
    assert.notEqual(live.secret, test.secret);
    assert.deepEqual([(await get()).json.url, (await get('live')).json.url], [URL_A, URL_B]);
    const other = await stack.createPartner();
    for (const [method, path] of ROUTES_WITHOUT_BODY) {
      expectError(await other.call(method, `/webhook-endpoint${path}`), 'webhook_endpoint_not_found');
    }
    assert.equal((await get()).status, 200);
  });

  it('is removed by DELETE with a 204 without a body, and the next one has a new secret', async () => {
    const { secret } = (await put({ url: URL_A })).json;
    const deleted = await partner.call('DELETE', '/webhook-endpoint');
    assert.deepEqual([deleted.status, deleted.text, deleted.headers.get('content-type')], [204, '', null]);
    expectError(await get(), 'webhook_endpoint_not_found');
    expectError(await partner.call('DELETE', '/webhook-endpoint'), 'webhook_endpoint_not_found');
    const again = (await put({ url: URL_A })).json.secret;
    assert.match(again, /^whsec_/);
    assert.notEqual(again, secret);
  });

  it('gets a new secret from rotate-secret, and keeps the previous one for 24 hours', async () => {
    const { secret: first } = (await put({ url: URL_A })).json;
    const { status, json } = await rotate();
    assert.equal(status, 200);
    assert.match(json.secret, /^whsec_/);
    assert.notEqual(json.secret, first);
    const inMs = Date.parse(json.previous_secret_expires_at) - Date.now();
    assert.ok(inMs > 23.9 * 3_600_000 && inMs <= 24 * 3_600_000, `${inMs} ms`);
    assert.deepEqual([await storedSecret(), await storedSecret('previous_secret')], [json.secret, first]);
    const again = (await rotate()).json.secret;
    assert.deepEqual([await storedSecret(), await storedSecret('previous_secret')], [again, json.secret]);
    await asOwner(
      stack,
      `UPDATE webhook_endpoint SET previous_secret_expires_at = now() - interval '1 second' WHERE partner_id = $1`,
      [partner.id],
    );
    assert.equal((await get()).json.previous_secret_expires_at, null);
  });

  it('records each change with the key, the request and the origin alone, and nothing if nothing changes', async () => {
    const operate = operateIn(environmentOf(stack.config));
    const url = 'https://hooks.example.com/secret-token';
    const { id } = (await partner.call('POST', '/webhook-endpoints', { body: { url } })).json;
    const path = `/webhook-endpoints/${id}`;
    for (const body of [
      { url: `${url}/b`, description: 'Books' },
      { description: 'Books' },
      { status: 'disabled' },
    ])
      await partner.call('PATCH', path, { body });
    await partner.call('POST', `${path}/rotate-secret`);
    for (let i = 0; i < 2; i++) await put({ url });
    await rotate();
    await partner.call('DELETE', path);
    assert.equal((await partner.call('DELETE', '/webhook-endpoint')).status, 404);

    const { json } = await operate('audit', 'list', '--subject', partner.id);
    const entries = json.filter(({ action }: { action: string }) => /^webhook/.test(action)).reverse();
    const actions = 'create update update rotate-secret set rotate-secret delete'.split(' ');
    const expected = actions.map((action) => `webhook-endpoint.${action}`);
    assert.deepEqual(column(entries, 'action'), expected);
    const settings = (entry: { detail: { settings?: string[] } }) => entry.detail.settings ?? [];
    assert.deepEqual(entries.flatMap(settings), ['url', 'description', 'status']);
    for (const { actor, detail, partner_id } of entries) {
      assert.match(actor, new RegExp(`^${partner.id}/key_\\w{26}$`));
      assert.equal(partner_id, partner.id);
      assert.deepEqual([detail.modes, detail.endpoints], [['test'], [id]]);
      assert.match(detail.requestId, /^req_/);
      assert.equal(detail.clientAddress, '127.0.0.1');
    }
    assert.doesNotMatch(JSON.stringify(entries), /secret-token|whsec_|Books/);
  });

  it('is made once, with one secret, by eight simultaneous PUTs', async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => put({ url: URL_A })));
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
    const secrets = answers.flatMap(({ json }) => (json.secret === undefined ? [] : [json.secret]));
    assert.deepEqual(secrets, [await storedSecret()]);
  });

  it('refuses a URL that must not be asked, and keeps the one that it has', async () => {
    await put({ url: URL_A });
    // One for each reason; all that is refused is in test/unit/webhooks/client.
    for (const url of [
      ...['http://hooks.example.com/', 'https://user:pass@hooks.example.com/', 'https://localhost/'],
      ...['https://hooks.example.com:22/', 'https://hooks.example.com/#x', 'https://2130706433/'],
      ...['https://169.254.169.254/latest', `https://hooks.example.com/${'x'.repeat(2_048)}`],
      ...['https://hooks.example.com/\u0000', 'https://hooks.example.com/\ud800'],
    ]) {
      expectError(await put({ url }), 'validation_failed', ['url']);
    }
    assert.equal((await get()).json.url, URL_A);
  });

  describe('with a receiver', () => {
    let receiver: Receiver;
    beforeEach(async () => {
      receiver = await startReceiver();
    });
    afterEach(() => receiver.stop());

    const test = () => partner.call('POST', '/webhook-endpoint/test');

    /** Has a ping sent. @returns the event, and what has arrived */
    async function ping() {
      const before = receiver.received.length;
      const { status, json } = await test();
      assert.equal(status, 202);
      await until('the ping arrives', async () => receiver.received.length > before);
      return { event: json, ...(receiver.received[before] as Receiver['received'][0]) };
    }

    it('gets a ping event, signed with its secret, after test answers 202', async () => {
      const { secret, ...endpoint } = (await put({ url: receiver.url })).json;
      const { event, headers, body } = await ping();
      const { delivery, deliveries, object, ...envelope } = event;
      assert.deepEqual([object, envelope.type, envelope.mode], ['event', 'ping', 'test']);
      assert.deepEqual(envelope.data, { webhook_endpoint: endpoint });
      assert.deepEqual(JSON.parse(body), envelope);
      const signed = `${headers['x-service-timestamp']}${body}${secret}`;
      assert.equal(headers['x-service-signature'], createHash('sha256').update(signed).digest('hex'));
      assert.equal(headers['webhook-signature'], undefined);
    });

    it('gets the headers of standard_webhooks as well, with two signatures during a rotation', async () => {
      await put({ url: receiver.url, standard_webhooks: true });
      const signatures = async () => String((await ping()).headers['webhook-signature']).split(' ').length;
      assert.equal(await signatures(), 1);
      await rotate();
      assert.equal(await signatures(), 2);
    });

    const disable = ({ id }: TestPartner) =>
      asOwner(
        stack,
        `UPDATE webhook_endpoint SET status = 'disabled', disabled_reason = 'it answered 410 Gone' WHERE partner_id = $1`,
        [id],
      );

    it('is enabled again by PUT, and parked events are sent', async () => {
      await put({ url: URL_A });
      await disable(partner);
      const disabled = (await get()).json;
      assert.deepEqual([disabled.status, disabled.disabled_reason], ['disabled', 'it answered 410 Gone']);
      expectError(await test(), 'invalid_state');
      const parked = await seedEvents(stack, partner, [{ status: 'parked' }, { status: 'parked' }]);
      await seedEvents(stack, partner, [{ status: 'no_endpoint' }, { status: 'given_up' }]);
      const other = await stack.createPartner();
      await other.call('POST', '/webhook-endpoints', { body: { url: URL_A } });
      await disable(other);
      const [kept] = await seedEvents(stack, other, [{ status: 'parked' }]);
      const enabled = (await put({ url: receiver.url })).json;
      assert.deepEqual([enabled.status, enabled.disabled_reason], ['enabled', null]);
      await until('both arrive', async () => receiver.received.length === 2);
      assert.deepEqual(receiver.received.map(({ id }) => id).sort(), parked.sort());
      assert.equal((await other.call('GET', `/events/${kept}`)).json.delivery.status, 'parked');
    });

    it('gets a test after the clock of the database was set back by an hour', async () => {
      await put({ url: receiver.url });
      await asOwner(
        stack,
        `INSERT INTO webhook_allowance (partner_id, mode, full_at) VALUES ($1, 'test', now() + interval '1 hour')`,
        [partner.id],
      );
      assert.equal((await test()).status, 202);
    });

    it('gets 60 tests at once, and then one a second', async () => {
      await put({ url: receiver.url });
      // Nearly used up, and for longer than this test can take.
      await asOwner(
        stack,
        `INSERT INTO webhook_allowance (partner_id, mode, full_at) VALUES ($1, 'test', now() + interval '119 seconds')`,
        [partner.id],
      );
      const refused = await test();
      expectError(refused, 'rate_limited');
      const seconds = Number(refused.headers.get('retry-after'));
      assert.ok(seconds > 1 && seconds <= 60, `${seconds} s`);
      assert.deepEqual((await partner.call('GET', '/events')).json.data, []);
      const unused = `UPDATE webhook_allowance SET full_at = now() WHERE partner_id = $1`;
      await asOwner(stack, unused, [partner.id]);
      const answers = await Promise.all(Array.from({ length: 120 }, test));
      const count = (wanted: number) => answers.filter(({ status }) => status === wanted).length;
      assert.ok(count(202) >= 60, `${count(202)}`);
      assert.equal(count(202) + count(429), 120);
      const [row] = await asOwner<{ ahead: number }>(
        stack,
        `SELECT extract(epoch FROM full_at - now())::float8 AS ahead FROM webhook_allowance WHERE partner_id = $1`,
        [partner.id],
      );
      assert.ok((row?.ahead ?? 99) <= 60, `${row?.ahead}`);
    });
  });
});

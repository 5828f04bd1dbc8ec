import assert from 'node:assert/strict';
import { Webhook } from 'standardwebhooks';
import { type WebhookHeaders, WebhookVerificationError, webhooks } from '../../../client/index.ts';
import { generateWebhookSecret, signEvent } from '../../../webhooks/secrets.ts';

const NOW_MS = Date.UTC(2026, 10, 20, 8);
const BODY = '{"id":"evt_1","type":"ping","mode":"test","data":{"label":"Caf\u00e9 \ud83d\ude80"}}';
const MINUTE_MS = 60_000;

describe("the client's webhooks.verify", () => {
  const [secret, newer] = [generateWebhookSecret(), generateWebhookSecret()];
  const signed = (nowMs = NOW_MS, by = secret) =>
    signEvent({ eventId: 'evt_1', body: BODY, secrets: [by], standardWebhooks: false, nowMs });
  const reasonFor = (body: string | Uint8Array, headers: WebhookHeaders, nowMs = NOW_MS) => {
    try {
      webhooks.verify(body, headers, secret, { nowMs });
      return assert.fail('it was accepted');
    } catch (error) {
      assert.ok(error instanceof WebhookVerificationError, String(error));
      return error.reason;
    }
  };

  it('accepts what the service signed, as text or bytes and with headers of any kind', () => {
    const headers = signed();
    const lower = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
    );
    for (const form of [headers, lower, new Headers(headers)]) {
      for (const body of [BODY, Buffer.from(BODY), new TextEncoder().encode(BODY)]) {
        assert.deepEqual(webhooks.verify(body, form, secret, { nowMs: NOW_MS }), JSON.parse(BODY));
      }
    }
  });

  it('accepts either secret while they are rotated', () => {
    for (const by of [secret, newer]) {
      const event = webhooks.verify(BODY, signed(NOW_MS, by), [secret, newer], { nowMs: NOW_MS });
      assert.equal(event.id, 'evt_1');
    }
    assert.equal(reasonFor(BODY, signed(NOW_MS, newer)), 'signature_mismatch');
  });

  it('refuses another body, timestamp or signature', () => {
    const headers = signed();
    assert.equal(reasonFor(`${BODY} `, headers), 'signature_mismatch');
    const later = { ...headers, 'X-Service-Timestamp': String(NOW_MS + 1) };
    assert.equal(reasonFor(BODY, later), 'signature_mismatch');
    for (const signature of ['0'.repeat(64), headers['X-Service-Signature']?.toUpperCase(), 'é'.repeat(32)]) {
      assert.equal(reasonFor(BODY, { ...headers, 'X-Service-Signature': signature }), 'signature_mismatch');
    }
  });

  it('refuses a webhook without its headers', () => {
    const { 'X-Service-Timestamp': timestamp, 'X-Service-Signature': signature } = signed();
    for (const headers of [
      {},
      { 'X-Service-Timestamp': timestamp },
      { 'X-Service-Signature': signature },
      { 'X-Service-Timestamp': '12e3', 'X-Service-Signature': signature },
    ])
      assert.equal(reasonFor(BODY, headers), 'headers_missing');
  });

  it('refuses a webhook that is further from the clock than five minutes, or than the given tolerance', () => {
    for (const sign of [1, -1]) {
      const at = NOW_MS + sign * 5 * MINUTE_MS;
      webhooks.verify(BODY, signed(), secret, { nowMs: at });
      assert.equal(reasonFor(BODY, signed(), at + sign), 'timestamp_outside_tolerance');
    }
    webhooks.verify(BODY, signed(), secret, { nowMs: NOW_MS + 3_600_000, toleranceMs: 3_600_000 });
  });

  describe('with the headers of Standard Webhooks', () => {
    const both = (secrets: [string, string?]) =>
      signEvent({ eventId: 'evt_1', body: BODY, secrets, standardWebhooks: true, nowMs: NOW_MS });
    const standard = (secrets: [string, string?] = [secret]) =>
      Object.fromEntries(Object.entries(both(secrets)).filter(([name]) => name.startsWith('webhook-')));

    it('accepts them alone, from the service and from their own library', () => {
      const library = new Webhook(secret).sign('evt_1', new Date(NOW_MS), BODY);
      for (const headers of [standard(), { ...standard(), 'webhook-signature': `v2,x ${library}` }]) {
        for (const body of [BODY, Buffer.from(BODY)]) {
          const event = webhooks.verify(body, new Headers(headers), secret, { nowMs: NOW_MS });
          assert.equal(event.id, 'evt_1');
        }
      }
    });

    it('accepts the old secret after a rotation, which only they still fit', () => {
      assert.equal(webhooks.verify(BODY, both([newer, secret]), secret, { nowMs: NOW_MS }).id, 'evt_1');
      assert.equal(reasonFor(BODY, both([newer])), 'signature_mismatch');
    });

    it('refuses another body, id, time or secret, and headers that are missing', () => {
      assert.equal(reasonFor(`${BODY} `, standard()), 'signature_mismatch');
      assert.equal(reasonFor(BODY, standard([newer])), 'signature_mismatch');
      assert.equal(reasonFor(BODY, { ...standard(), 'webhook-id': 'evt_2' }), 'signature_mismatch');
      const later = String(NOW_MS / 1_000 + 1);
      assert.equal(reasonFor(BODY, { ...standard(), 'webhook-timestamp': later }), 'signature_mismatch');
      for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature']) {
        assert.equal(reasonFor(BODY, { ...standard(), [name]: '' }), 'headers_missing');
      }
      const inMs = { ...standard(), 'webhook-timestamp': String(NOW_MS) };
      assert.equal(reasonFor(BODY, inMs), 'headers_missing');
    });

    it('refuses a webhook that is too far from the clock', () => {
      webhooks.verify(BODY, standard(), secret, { nowMs: NOW_MS + 5 * MINUTE_MS });
      assert.equal(reasonFor(BODY, standard(), NOW_MS + 5 * MINUTE_MS + 1), 'timestamp_outside_tolerance');
    });
  });

  it('throws a clear error for a parsed body or an invalid secret', () => {
    const parsed = JSON.parse(BODY);
    assert.throws(() => webhooks.verify(parsed, signed(), secret), /before the body is parsed/);
    for (const none of ['', 'abc', [], [secret, ''], 'whsec_', `${secret}\n`]) {
      assert.throws(() => webhooks.verify(BODY, signed(), none), /whole webhook secret/);
    }
  });
});

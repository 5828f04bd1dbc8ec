import assert from 'node:assert/strict';
import { Webhook } from 'standardwebhooks';
import { KeyRing } from '../../../platform/crypto/key-ring.ts';
import {
  generateWebhookSecret,
  openEndpointSecret,
  sealEndpointSecret,
  signEvent,
} from '../../../webhooks/secrets.ts';

const CURRENT = 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwd';
const PREVIOUS = 'whsec_ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CB';
const EVENT = {
  eventId: 'evt_01jd',
  body: '{"id":"evt_01jd","data":{"name":"Ødegård","note":"é😀"}}',
  nowMs: 1_795_246_916_693,
};

// What is expected was computed with openssl and with Python's hashlib and hmac.
describe('a webhook secret', () => {
  it('is whsec_ and the unpadded base64 of as many bytes as Standard Webhooks requires, others each time', () => {
    const secret = generateWebhookSecret();
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{40}$/);
    const bytes = Buffer.from(secret.slice('whsec_'.length), 'base64');
    assert.ok(bytes.length >= 24 && bytes.length <= 64);
    assert.equal(`whsec_${bytes.toString('base64')}`, secret);
    assert.notEqual(generateWebhookSecret(), secret);
  });

  it('is sealed for its endpoint, and opens for no other of the same account', () => {
    const ring = new KeyRing([{ id: 'k1', secret: Buffer.alloc(32, 1) }]);
    const sealed = sealEndpointSecret(ring, 'we_1', CURRENT);
    assert.equal(openEndpointSecret(ring, { id: 'we_1' }, sealed), CURRENT);
    assert.throws(() => openEndpointSecret(ring, { id: 'we_2' }, sealed));
  });
});

describe('signEvent', () => {
  const OWN = {
    'X-Service-Event-Id': 'evt_01jd',
    'X-Service-Timestamp': '1795246916693',
    'X-Service-Signature': 'ec555c8fd47f5c5db95bfc1963bdfa9cba9a05ac64f012f5dd3d0a1e0017a1de',
  };

  it("returns the contract's headers, and no others unless they are asked for", () => {
    assert.deepEqual(signEvent({ ...EVENT, secrets: [CURRENT], standardWebhooks: false }), OWN);
  });

  it("adds the headers of Standard Webhooks on request, during a rotation with both secrets' signatures", () => {
    assert.deepEqual(signEvent({ ...EVENT, secrets: [CURRENT, PREVIOUS], standardWebhooks: true }), {
      ...OWN,
      'webhook-id': 'evt_01jd',
      'webhook-timestamp': '1795246916',
      'webhook-signature':
        'v1,MOiQZ0shaY2hovnw2c2Nwu52qgG93FcsrlTFgMMz2XY= v1,MLrVj0esycIlhz7g2DfSQYnLddZJIpt5QmU2jPZoczE=',
    });
  });

  it("passes Standard Webhooks' own library with the old secret and with the new one", () => {
    const secrets = [generateWebhookSecret(), generateWebhookSecret()] as const;
    const headers = signEvent({ ...EVENT, nowMs: Date.now(), secrets, standardWebhooks: true });
    for (const secret of secrets) {
      assert.deepEqual(new Webhook(secret).verify(EVENT.body, headers), JSON.parse(EVENT.body));
    }
    assert.throws(() => new Webhook(generateWebhookSecret()).verify(EVENT.body, headers));
    assert.throws(() => new Webhook(secrets[0]).verify(`${EVENT.body} `, headers));
  });
});

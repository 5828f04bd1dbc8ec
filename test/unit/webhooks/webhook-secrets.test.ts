import assert from 'node:assert/strict';
import { KeyRing } from '../../../platform/crypto/key-ring.ts';
import { openEndpointSecret, sealEndpointSecret } from '../../../webhooks/secrets.ts';

describe('a sealed webhook secret', () => {
  const ring = new KeyRing([{ id: 'k1', secret: Buffer.alloc(32, 1) }]);
  const ours = { id: 'we_1' };

  it('opens for its endpoint, and for no other of the same account', () => {
    const sealed = sealEndpointSecret(ring, ours.id, 'whsec_a');
    assert.equal(openEndpointSecret(ring, ours, sealed), 'whsec_a');
    assert.throws(() => openEndpointSecret(ring, { id: 'we_2' }, sealed));
  });
});

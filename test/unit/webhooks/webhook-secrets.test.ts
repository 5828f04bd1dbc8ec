import assert from 'node:assert/strict';
import { KeyRing } from '../../../platform/crypto/key-ring.ts';
import { accountSecretContext, openEndpointSecret, sealEndpointSecret } from '../../../webhooks/secrets.ts';

describe('a sealed webhook secret', () => {
  const ring = new KeyRing([{ id: 'k1', secret: Buffer.alloc(32, 1) }]);
  const ours = { id: 'we_1', partner_id: 'prt_1', mode: 'live' };

  it('opens for its endpoint, and for no other of the same account', () => {
    const sealed = sealEndpointSecret(ring, ours.id, 'whsec_a');
    assert.equal(openEndpointSecret(ring, ours, sealed), 'whsec_a');
    assert.throws(() => openEndpointSecret(ring, { ...ours, id: 'we_2' }, sealed));
  });

  it('of an earlier version opens for its account and mode', () => {
    const sealed = ring.seal('whsec_a', accountSecretContext('prt_1/live'));
    assert.equal(openEndpointSecret(ring, ours, sealed), 'whsec_a');
    for (const other of [{ mode: 'test' }, { partner_id: 'prt_2' }])
      assert.throws(() => openEndpointSecret(ring, { ...ours, ...other }, sealed));
  });
});

import assert from 'node:assert/strict';
import { generateWebhookSecret, webhookSecretBytes } from '../../../crypto/webhook-secret.ts';

describe('a webhook secret', () => {
  it('is whsec_ and the unpadded base64 of as many bytes as Standard Webhooks asks for', () => {
    const secret = generateWebhookSecret();
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{40}$/);
    const bytes = webhookSecretBytes(secret);
    assert.ok(bytes.length >= 24 && bytes.length <= 64);
    assert.equal(`whsec_${bytes.toString('base64')}`, secret);
  });

  it('is another one each time', () => {
    assert.equal(new Set(Array.from({ length: 100 }, generateWebhookSecret)).size, 100);
  });
});
